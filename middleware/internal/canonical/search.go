package canonical

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dunglas/httpsfv"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Search says which differences between two queries do not matter: the URL search variance of No-Vary-Search
// (draft-ietf-httpbis-no-vary-search). Nil: all of them do.
type Search struct {
	anyOrder bool
	except   bool     // names are the parameters that count; otherwise, the others
	names    []string // decoded
	text     string   // equal for equal ones
}

const (
	noVarySearch = "No-Vary-Search" // of a response, and of a record that leads to it
	maxNames     = 64
)

// SearchOf is what a response says. A field that is malformed, or longer than anyone needs, says nothing.
func SearchOf(h http.Header) *Search {
	lines := h[noVarySearch]
	if len(lines) == 0 || rules.IsLong(lines) {
		return nil
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil
	}
	s, ok := new(Search), true
	if member, found := dict.Get("key-order"); found {
		s.anyOrder, ok = rules.Value[bool](member)
	}
	params, hasParams := dict.Get("params")
	all, isBoolean := rules.Value[bool](params)
	if hasParams && !isBoolean {
		ok = ok && s.list(params)
	}
	s.except = all
	if member, found := dict.Get("except"); found {
		ok = ok && all && s.list(member)
	}
	if !ok || len(s.names) > maxNames || !s.anyOrder && !s.except && len(s.names) == 0 {
		return nil
	}
	s.text = s.String()
	return s
}

// list takes the names from a list of strings.
func (s *Search) list(member httpsfv.Member) bool {
	list, ok := member.(httpsfv.InnerList)
	for _, item := range list.Items {
		text, isString := item.Value.(string)
		name, err := url.QueryUnescape(text)
		if !isString || err != nil {
			return false
		}
		s.names = append(s.names, name)
	}
	s.names = rules.Sorted(s.names)
	return ok
}

// String is the field in its shortest form. Equal ones have the same.
func (s *Search) String() string {
	var text strings.Builder
	if s.anyOrder {
		text.WriteString("order ")
	}
	if s.except {
		text.WriteString("except ")
	}
	for _, name := range s.names {
		text.WriteString(url.QueryEscape(name) + " ")
	}
	return text.String()
}

// Same reports whether two of them, or none, say the same.
func (s *Search) Same(other *Search) bool {
	return s == nil && other == nil || s != nil && other != nil && s.text == other.text
}

// Normal is the same text for all queries between which s sees no difference. A query that handlers may read in different ways counts as
// it is.
func (s *Search) Normal(query string) string {
	query = strings.TrimPrefix(query, "?")
	exact := "=" + query
	if strings.Contains(query, ";") {
		return exact
	}
	type param struct{ name, value string }
	var kept []param
	for text := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(text, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil {
			return exact
		}
		if text != "" && s.counts(name) {
			kept = append(kept, param{name, value})
		}
	}
	if s.anyOrder {
		slices.SortStableFunc(kept, func(a, b param) int { return strings.Compare(a.name, b.name) })
	}
	normal := "~" + s.text
	for _, p := range kept {
		normal += "&" + url.QueryEscape(p.name) + "=" + url.QueryEscape(p.value)
	}
	return normal
}

// counts reports whether a parameter tells pages apart. Where only some do, it is enough that a framework may take it for one of them:
// ID, id[] or " id" for id.
func (s *Search) counts(name string) bool {
	if !s.except {
		return !slices.Contains(s.names, name)
	}
	return slices.ContainsFunc(s.names, func(n string) bool { return n == name || loosely(n) == loosely(name) })
}

// loosely is what a framework that is not strict may read of a name.
func loosely(name string) string {
	name, _, _ = strings.Cut(name, "[")
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n._-+", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// searched ends the location of a path whose queries are variants, told apart by bySearch. No URL has it.
const (
	searched = Separator + "?"
	bySearch = ":search"
)

// pathOf is a location without its query; empty if that is not to be remembered.
func pathOf(location string) string {
	path, _, _ := strings.Cut(location, "?")
	if len(path) > maxLocation/2 || strings.Contains(path, Separator) {
		return ""
	}
	return path
}

// Searched is the key and the location of all pages of the path that a canonical request asks for, and what selects among them. Their handler
// gets the whole query: like Vary, the field is the page's own word, and when it changes, the client must still have its own response.
func (n *Namer) Searched(r *http.Request, s *Search) (key, location string, selects record.Pair) {
	p := nameIn(r)
	selects = record.Pair{Name: bySearch, Value: short(s.Normal(p.query))}
	p.query = searched
	location = p.location()
	return n.PageKey(location), location, selects
}

// WithoutQuery is what selects among pages whose queries are selected by what counts of them, in whatever notation.
func WithoutQuery(unnamed []record.Pair) []record.Pair {
	return slices.DeleteFunc(unnamed, func(p record.Pair) bool { return p.Name == byQuery })
}

// Searches remembers what the responses of paths said last, in a bounded memory.
type Searches struct {
	any  atomic.Bool
	mu   sync.Mutex
	said map[string]*Search // by path
}

// maxSearches is how many paths are remembered. Then all are forgotten: what is in the cache says it again.
const maxSearches = 1 << 13

// Any reports whether a response has said anything.
func (s *Searches) Any() bool { return s.any.Load() }

// Of is what the responses of the location's path said; nil: nothing.
func (s *Searches) Of(location string) *Search {
	path := pathOf(location)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[path]
}

// Learn notes what a response at the location said, and reports whether it will be known; nil: nothing.
func (s *Searches) Learn(location string, said *Search) bool {
	path := pathOf(location)
	if path == "" || said == nil && !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if said == nil {
		delete(s.said, path)
		return false
	}
	if s.said == nil || len(s.said) >= maxSearches {
		s.said = make(map[string]*Search)
	}
	s.said[path] = said
	s.any.Store(true)
	return true
}
