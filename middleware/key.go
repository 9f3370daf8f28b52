package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/canonical"
)

// Key is what tells pages apart beyond RFC 9111. The handler of a page does not see the parameters that do not count: otherwise, one
// client could choose what others read. See Config.KeyFields for request fields, and Config.SortQuery for the order of parameters.
type Key struct {
	// IgnoreQuery are parameters of the query that do not tell pages apart, such as utm_* (a star at the end stands for any text) or
	// gclid. OnlyQuery are the only ones that do. At most one of the two may be set. Default: all parameters count.
	IgnoreQuery, OnlyQuery []string

	// Cookies are the names of cookies whose values tell pages apart. Other cookies do not, so the handler must not let them shape a
	// response that may be stored. Default: none.
	Cookies []string

	// Host is the host that all requests are for, whatever their own says: instances that are asked under addresses of their own share pages
	// then. The handlers of pages see it as the request's Host. Default: each Host has pages of its own.
	Host string

	// Claim returns what a middleware in front knows of the client and pages depend on, such as the plan or the language of an account;
	// empty: nothing. It is called with each GET and HEAD, and must be quick. Default: none.
	Claim func(r *http.Request) string
}

// Limits bound what clients can make the cache store by asking for ever more URLs or variants. What the handler makes
// beyond them answers all who wait for it, with detail=limit in Cache-Status, and is not stored. Each instance counts for itself, in a bounded memory, so the numbers of a fleet are larger.
type Limits struct {
	// URL is the length of the longest URL that has a page, with its host, in bytes. Default: 8192.
	URL int

	// Variants is how many variants a page gets within an hour or two, beside the first: a Vary with User-Agent makes thousands. One that is
	// asked for twice as often as the least wanted of them takes its place. Default: 0, no limit.
	Variants int

	// Pages is how many pages with different queries a path gets within an hour or two, in the same way. Default: 0, no limit.
	Pages int

	// Admit stores a page only when it has been asked for twice within this time, so that URLs that nobody asks for again cost Redis
	// nothing. Routes of chi and http.ServeMux without wildcards are exempt, as long as there is no query. Default: 0, off.
	Admit time.Duration
}

const defaultMaxURL = 8 << 10

func (k *Key) check(bad func(field, format string, args ...any)) {
	if len(k.IgnoreQuery) > 0 && len(k.OnlyQuery) > 0 {
		bad("Key.OnlyQuery", "is set beside IgnoreQuery")
	}
	if k.Host != "" && !canonical.IsHost(k.Host) {
		bad("Key.Host", "%q is no host", k.Host)
	}
	for field, names := range map[string][]string{"Key.IgnoreQuery": k.IgnoreQuery, "Key.OnlyQuery": k.OnlyQuery, "Key.Cookies": k.Cookies} {
		for _, name := range names {
			switch star := strings.IndexByte(name, '*'); {
			case name == "" || field == "Key.Cookies" && strings.ContainsAny(name, " =;,\t\n\""):
				bad(field, "%q is no name", name)
			case field != "Key.Cookies" && star >= 0 && star < len(name)-1:
				bad(field, "%q has a star that is not at its end", name)
			}
		}
	}
}
