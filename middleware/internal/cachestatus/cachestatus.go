// Package cachestatus formats the parameters of Cache-Status (RFC 9211).
package cachestatus

import (
	"strconv"
	"strings"
	"time"
)

// Forward has the parameters of a response that the handler was asked for.
type Forward struct {
	Why       string        // why it was asked
	Status    int           // of the handler's response; 0: not said
	TTL       time.Duration // how long the response is still fresh, if HasTTL
	HasTTL    bool
	Stored    bool
	Collapsed bool // the response was made for another request
	Detail    string
}

// String returns the parameters as they follow the name of the cache.
func (f Forward) String() string {
	s := "; fwd=" + f.Why
	if f.Status != 0 {
		s += "; fwd-status=" + strconv.Itoa(f.Status)
	}
	if f.HasTTL {
		s += string(appendTTL(nil, f.TTL))
	}
	if f.Stored {
		s += "; stored"
	}
	if f.Collapsed {
		s += "; collapsed"
	}
	if f.Detail != "" {
		s += Detail(f.Detail)
	}
	return s
}

// Hit is the member of a cache that had the response.
func Hit(cache string, ttl time.Duration) string {
	var room [64]byte
	return string(appendTTL(append(append(room[:0], cache...), "; hit"...), ttl))
}

// Detail is the parameter that tells more.
func Detail(detail string) string { return "; detail=" + detail }

func appendTTL(b []byte, d time.Duration) []byte {
	seconds := d / time.Second
	if d < 0 && d%time.Second != 0 {
		seconds-- // a response that has just become stale is not fresh
	}
	return strconv.AppendInt(append(b, "; ttl="...), int64(seconds), 10)
}

// Key is the parameter that names the page: a String of Structured Fields, without the characters that no String may have.
func Key(key string) string {
	var b strings.Builder
	b.WriteString(`; key="`)
	for i := range len(key) {
		switch c := key[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c < 127:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
