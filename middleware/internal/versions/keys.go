package versions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// The kinds of versions, as their keys begin.
const (
	anyTag     = "version-any-tag" // for all tags together
	tagPrefix  = "version-tag"
	pathPrefix = "version-path"
)

// InvalidateTags removes the versions of tags. A tag that no response can have is an error; the others are invalidated all the same.
func (s *Set) InvalidateTags(ctx context.Context, tags []string) error {
	first := s.Guard.Invalidate(ctx, s.anyTagKey())
	return errors.Join(checkTags(tags), first, s.Guard.Invalidate(ctx, s.tagKeys(tags)...))
}

// InvalidatePrefix removes the version of a prefix.
func (s *Set) InvalidatePrefix(ctx context.Context, prefix string) error {
	return s.Guard.Invalidate(ctx, s.Names.Key(pathPrefix, prefix))
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

func (s *Set) anyTagKey() string { return s.Names.Key(anyTag, "") }

func (s *Set) tagKeys(tags []string) []string {
	keys := make([]string, len(tags))
	for i, tag := range tags {
		keys[i] = s.Names.Key(tagPrefix, tag)
	}
	return keys
}

// prefixKeys are the versions of the prefixes that a request falls under: by the path that the client sent, by the path that a router
// made of it, and by both as handlers see them that clean paths (//shop/a, /x/../shop/a).
func (s *Set) prefixKeys(r *http.Request) (keys []string) {
	if len(s.Prefixes) == 0 {
		return nil
	}
	paths := []string{r.URL.Path, cleaned(r.URL.Path)}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		paths = append(paths, u.Path, cleaned(u.Path))
	}
	for _, prefix := range s.Prefixes {
		if slices.ContainsFunc(paths, func(asked string) bool { return strings.HasPrefix(asked, prefix) }) {
			keys = append(keys, s.Names.Key(pathPrefix, prefix))
		}
	}
	return keys
}

// cleaned is the shortest path with the same meaning; a slash at its end stays.
func cleaned(p string) string {
	short := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && short != "/" {
		short += "/"
	}
	return short
}
