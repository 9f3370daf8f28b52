package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// The Guard's tags of a page: those of its response, its groups (RFC 9875), and the prefixes that its path is under.
const (
	tagName    = "tag"
	groupName  = "group"
	prefixName = "path"
)

// inFront begins the names of fields with tags that were set in front of a record, which no client gets from it.
const inFront = ":"

// taggedInFront notes these of a response's header.
func taggedInFront(rec *record.Record, h, own http.Header) {
	for _, name := range []string{"Cache-Tag", "Surrogate-Key", rules.CacheGroups} {
		for _, line := range h[name] {
			if !slices.Contains(own[name], line) {
				rec.Front = append(rec.Front, record.Pair{Name: inFront + name, Value: line})
			}
		}
	}
}

// tagsOf are the Guard's tags of a response, besides prefixTags.
func (c *Cache) tagsOf(rec *record.Record) []string {
	h := rec.HTTPHeader()
	for _, p := range rec.Front {
		if name, tags := strings.CutPrefix(p.Name, inFront); tags {
			h[name] = append(h[name], p.Value)
		}
	}
	groups := c.namesOf(groupName, canonical.Site(rec.Location)+canonical.Separator, rules.Groups(h[rules.CacheGroups]))
	return append(c.namesOf(tagName, "", rules.Tags(h)), groups...)
}

// namesOf are the Guard's tags of one kind. Groups are within their origin.
func (c *Cache) namesOf(what, within string, tags []string) []string {
	if len(tags) > 0 && !c.tagged.Load() {
		c.tagged.Store(true)
	}
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = c.names.Key(what, within+tag)
	}
	return names
}

// prefixTags are the Guard's tags of the prefixes that a request falls under: by the path that the client sent, by the path that a
// router made of it, and by both as handlers see them that clean paths (//shop/a, /x/../shop/a).
func (c *Cache) prefixTags(r *http.Request) (names []string) {
	if len(c.prefixes) == 0 {
		return nil
	}
	paths := []string{r.URL.Path, cleaned(r.URL.Path)}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		paths = append(paths, u.Path, cleaned(u.Path))
	}
	for _, prefix := range c.prefixes {
		if slices.ContainsFunc(paths, func(asked string) bool { return strings.HasPrefix(asked, prefix) }) {
			names = append(names, c.names.Key(prefixName, prefix))
		}
	}
	return names
}

// unescapedPath is a path as handlers see it, which is how prefixes are compared.
func unescapedPath(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		return plain
	}
	return p
}

// cleaned is the shortest path with the same meaning; a slash at its end stays.
func cleaned(p string) string {
	short := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && short != "/" {
		short += "/"
	}
	return short
}

// checkTags names the tags that rules.Tags returns for no header.
func checkTags(tags []string) error {
	var problems []error
	for _, tag := range tags {
		blank, comma := strings.ContainsAny(tag, " \t"), strings.Contains(tag, ",")
		if tag == "" || strings.Trim(tag, " \t") != tag || blank && comma {
			problems = append(problems, fmt.Errorf("middleware: %q is no tag that a response can have", tag))
		}
	}
	return errors.Join(problems...)
}

// stores has the Guard keep a record, by its tags, and is its text. A record that was read keeps those that its handler set as well.
func (c *Cache) stores(ctx context.Context, rec *record.Record, keep time.Duration) []byte {
	if rec.IsResponse() {
		cacheguard.SetTags(ctx, c.tagsOf(rec)...)
	}
	if rec.WasRead() {
		cacheguard.KeepTags(ctx)
	}
	cacheguard.SetTTL(ctx, keep)
	return rec.Encode()
}
