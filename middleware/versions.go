package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// A version is a random value in the Guard that stands for a tag or a prefix of paths. A record holds the versions it was made
// under and is valid while they are the same, so removing a version invalidates all records of it, wherever they are. A
// version that was evicted does so too.
//
// A version has to be read before the handler is called. That is not possible for tags that a page has for the first time;
// for these, anyTag is read before and after, which every invalidation of a tag removes before the tag.
const (
	anyTag     = "version-any-tag"
	tagPrefix  = "version-tag:"
	pathPrefix = "version-path:"

	// keepVersion is how long a version is kept. What it is about is made anew when it ends.
	keepVersion = 30 * 24 * time.Hour

	// maxTags is how many tags a response may have to be stored.
	maxTags = 128
)

// tags are those of a response: Cache-Tag is separated by commas, Surrogate-Key by spaces.
func tags(h http.Header) (names []string) {
	names = fieldList(h["Cache-Tag"])
	for _, line := range h["Surrogate-Key"] {
		names = append(names, strings.Fields(line)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkTags names those that tags returns for no header.
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

func tagKeys(tags []string) []string {
	keys := make([]string, len(tags))
	for i, tag := range tags {
		keys[i] = shorten(tagPrefix + tag)
	}
	return keys
}

// prefixKeys are the versions of the prefixes that a path falls under.
func (c *Config) prefixKeys(path string) (keys []string) {
	for _, prefix := range c.Prefixes {
		if strings.HasPrefix(path, prefix) {
			keys = append(keys, pathPrefix+prefix)
		}
	}
	return keys
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
func (c *Cache) holds(ctx context.Context, versions []pair) bool {
	if len(versions) == 0 {
		return true
	}
	keys := make([]string, len(versions))
	for i, v := range versions {
		keys[i] = v.name
	}
	got, ok := c.versions(ctx, keys)
	return ok && !slices.ContainsFunc(versions, func(v pair) bool { return got[v.name] != v.value })
}

// versionsBefore reads the versions that a response is known to have before the handler is called.
func (l *lookup) versionsBefore(ctx context.Context) (map[string]string, bool) {
	keys := append(l.cfg.prefixKeys(l.r.URL.Path), anyTag)
	if l.old != nil {
		for _, v := range l.old.versions {
			if !slices.Contains(keys, v.name) {
				keys = append(keys, v.name)
			}
		}
	}
	return l.versions(ctx, keys)
}

// versionsAfter gives the record its versions. It reports whether they are those of before the handler was called.
func (l *lookup) versionsAfter(ctx context.Context, before map[string]string, rec *record) bool {
	var unknown []string
	keys := append(l.cfg.prefixKeys(l.r.URL.Path), tagKeys(tags(rec.headerOf()))...)
	for _, key := range keys {
		if _, known := before[key]; !known {
			unknown = append(unknown, key)
		}
	}
	after, ok := l.versions(ctx, unknown)
	if !ok || len(unknown) > 0 && !l.noTagWasInvalidated(ctx, before[anyTag]) {
		return false
	}
	rec.versions = nil
	for _, key := range keys {
		value, known := before[key]
		if !known {
			value = after[key]
		}
		rec.versions = append(rec.versions, pair{key, value})
	}
	return true
}

// noTagWasInvalidated asks Redis, as a local tier may not have heard of it yet.
func (l *lookup) noTagWasInvalidated(ctx context.Context, before string) bool {
	now, _, err := cacheguard.Fetch(ctx, l.guard, anyTag, cacheguard.Source[string]{SkipLocal: true})
	return err == nil && now == before
}
