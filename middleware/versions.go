package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// A version is a random value in the Guard that stands for a tag or a prefix of paths. A record holds the versions it was made
// under and is valid while they are the same, so removing a version invalidates all records of it, wherever they are. A
// version that was evicted does so too.
//
// A version has to be read before the handler is called. That is not possible for tags that a page has for the first time;
// for these, anyTag is read before and after, which every invalidation of a tag removes before the tag.
const (
	anyTag     = "version-any-tag"
	tagPrefix  = "version-tag"
	pathPrefix = "version-path"

	// keepVersion is how long a version is kept. What it is about is made anew when it ends.
	keepVersion = 30 * 24 * time.Hour
)

// checkTags names those that rules.Tags returns for no header.
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

// anyTagKey is the key of the version for all tags together.
func (c *Config) anyTagKey() string { return c.key(anyTag, "") }

func (c *Config) tagKeys(tags []string) []string {
	keys := make([]string, len(tags))
	for i, tag := range tags {
		keys[i] = c.key(tagPrefix, tag)
	}
	return keys
}

// prefixKeys are the versions of the prefixes that a request falls under: by the path that the client asked for, or that a router
// made of it, and by what handlers that clean paths (//shop/a, /x/../shop/a) take these for.
func (c *Config) prefixKeys(r *http.Request) (keys []string) {
	if len(c.Prefixes) == 0 {
		return nil
	}
	paths := []string{r.URL.Path, cleaned(r.URL.Path)}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		paths = append(paths, u.Path, cleaned(u.Path))
	}
	for _, prefix := range c.Prefixes {
		if slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, prefix) }) {
			keys = append(keys, c.key(pathPrefix, prefix))
		}
	}
	return keys
}

// cleaned is the shortest path that means the same, with the slash at its end.
func cleaned(p string) string {
	short := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && short != "/" {
		short += "/"
	}
	return short
}

// versions returns the versions of the keys; those that are not there begin now.
func (c *Cache) versions(ctx context.Context, keys []string) (map[string]string, bool) {
	if len(keys) == 0 {
		return nil, true
	}
	got, err := cacheguard.GetMany(ctx, c.guard, keys, func(ctx context.Context, missing []string) (map[string]string, error) {
		cacheguard.SetTTL(ctx, keepVersion)
		made := make(map[string]string, len(missing))
		for _, key := range missing {
			made[key] = rand.Text()
		}
		return made, nil
	})
	return got, err == nil
}

// holds reports whether the versions are still the same.
func (c *Cache) holds(ctx context.Context, versions []record.Pair) bool {
	if len(versions) == 0 {
		return true
	}
	keys := make([]string, len(versions))
	for i, v := range versions {
		keys[i] = v.Name
	}
	got, ok := c.versions(ctx, keys)
	return ok && !slices.ContainsFunc(versions, func(v record.Pair) bool { return got[v.Name] != v.Value })
}

// versionsBefore reads the versions that a response is known to have before the handler is called.
func (l *lookup) versionsBefore(ctx context.Context) (map[string]string, bool) {
	keys := append(l.x.cache.cfg.prefixKeys(l.x.r), l.x.cache.cfg.anyTagKey())
	if l.old != nil {
		for _, v := range l.old.Versions {
			if !slices.Contains(keys, v.Name) {
				keys = append(keys, v.Name)
			}
		}
	}
	return l.x.cache.versions(ctx, keys)
}

// versionsAfter gives the record its versions. It reports whether they are those of before the handler was called. If they are not,
// the record is not stored, but requests that joined the load get it: by the versions from before, they find that it was overtaken.
func (l *lookup) versionsAfter(ctx context.Context, before map[string]string, rec *record.Record) bool {
	var unknown []string
	cfg := &l.x.cache.cfg
	keys := append(cfg.prefixKeys(l.x.r), cfg.tagKeys(rules.Tags(rec.HTTPHeader()))...)
	for _, key := range keys {
		if _, known := before[key]; !known {
			unknown = append(unknown, key)
		}
	}
	rec.Versions = nil
	after, ok := l.x.cache.versions(ctx, unknown)
	if !ok {
		return false
	}
	if len(unknown) > 0 {
		same, err := l.noTagWasInvalidated(ctx, before[cfg.anyTagKey()])
		if err != nil { // Redis does not answer, and nobody knows
			return false
		}
		if !same {
			for name, value := range before {
				rec.Versions = append(rec.Versions, record.Pair{Name: name, Value: value})
			}
			return false
		}
	}
	for _, key := range keys {
		value, known := before[key]
		if !known {
			value = after[key]
		}
		rec.Versions = append(rec.Versions, record.Pair{Name: key, Value: value})
	}
	return true
}

// noTagWasInvalidated asks Redis, as a local tier may not have heard of it yet.
func (l *lookup) noTagWasInvalidated(ctx context.Context, before string) (bool, error) {
	now, _, err := cacheguard.Fetch(ctx, l.x.cache.guard, l.x.cache.cfg.anyTagKey(), cacheguard.Source[string]{SkipLocal: true})
	if errors.Is(err, cacheguard.ErrNotCached) {
		return false, nil
	}
	return now == before, err
}
