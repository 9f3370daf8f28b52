package config

import (
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxInstance is how many bytes the name of an instance may have. With the time before it, Redis keeps it compact in a
// hash.
const MaxInstance = 50

// Instance refuses a name that does not fit into a lease, or that a log would not show as it is.
func (p *Problems) Instance(name string) {
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	switch {
	case len(name) > MaxInstance:
		p.Add("Instance", "its %d bytes are more than %d", len(name), MaxInstance)
	case strings.ContainsFunc(name, hidden):
		p.Add("Instance", "%q has a space, or a character that cannot be printed", name)
	}
}

// DefaultInstance is host:pid. Of a long host, only the end is there, as it tells the instances of a service apart.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return instanceOf(host, os.Getpid())
}

func instanceOf(host string, pid int) string {
	host = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' {
			return '_'
		}
		return r
	}, host)
	id := ":" + strconv.Itoa(pid)
	return host[max(len(host)+len(id)-MaxInstance, 0):] + id
}
