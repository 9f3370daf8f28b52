// Package versions invalidates many records at once: all that have a tag, or a path under a prefix.
//
// A version is a random value in the Guard that stands for one tag or prefix. A record holds the versions that it was made under, and is
// valid while they are the same. Removing a version therefore invalidates all its records, wherever they are, without looking for them.
// An evicted version does so too.
//
// Versions have to be read before the handler is called, and the tags of a response are known only afterwards. So each removal of a tag
// first removes the version that stands for all tags together. That one is read before the handler is called and again after it; if it
// changed, some tag was invalidated meanwhile, and the response is not stored.
package versions

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/identity"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// lifetime is how long a version is kept. When it ends, the records made under it are made anew.
const lifetime = 30 * 24 * time.Hour

// Set has the versions of one Space.
type Set struct {
	Guard    *cacheguard.Guard
	Names    *identity.Namer
	Prefixes []string // of paths
}

// Snapshot is the versions at one time, by their keys.
type Snapshot map[string]string

// read returns the versions of the keys. A version that does not exist begins now.
func (s *Set) read(ctx context.Context, keys []string) (Snapshot, bool) {
	if len(keys) == 0 {
		return nil, true
	}
	got, err := cacheguard.GetMany(ctx, s.Guard, keys, func(ctx context.Context, missing []string) (map[string]string, error) {
		cacheguard.SetTTL(ctx, lifetime)
		begun := make(map[string]string, len(missing))
		for _, key := range missing {
			begun[key] = rand.Text()
		}
		return begun, nil
	})
	return got, err == nil
}

// Hold reports whether the versions of a record are still the same.
func (s *Set) Hold(ctx context.Context, versions []record.Pair) bool {
	if len(versions) == 0 {
		return true
	}
	keys := make([]string, len(versions))
	for i, v := range versions {
		keys[i] = v.Name
	}
	got, ok := s.read(ctx, keys)
	return ok && !slices.ContainsFunc(versions, func(v record.Pair) bool { return got[v.Name] != v.Value })
}

// Before reads the versions that a response is likely to have, before the handler is called for it. Old is the record that it replaces,
// or nil.
func (s *Set) Before(ctx context.Context, r *http.Request, old *record.Record) (Snapshot, bool) {
	keys := append(s.prefixKeys(r), s.anyTagKey())
	if old != nil {
		for _, v := range old.Versions {
			if !slices.Contains(keys, v.Name) {
				keys = append(keys, v.Name)
			}
		}
	}
	return s.read(ctx, keys)
}

// After gives the record its versions, and reports whether they are those from before the handler was called. If they are not, the record
// must not be stored. Requests that joined the load get it all the same, and find by its versions that an invalidation overtook it.
func (s *Set) After(ctx context.Context, r *http.Request, before Snapshot, rec *record.Record) bool {
	var unknown []string
	keys := append(s.prefixKeys(r), s.tagKeys(rules.Tags(rec.HTTPHeader()))...)
	for _, key := range keys {
		if _, known := before[key]; !known {
			unknown = append(unknown, key)
		}
	}
	rec.Versions = nil
	after, ok := s.read(ctx, unknown)
	if !ok {
		return false
	}
	if len(unknown) > 0 {
		same, err := s.noTagWasInvalidated(ctx, before)
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
		rec.Versions = append(rec.Versions, record.Pair{Name: key, Value: cmp.Or(before[key], after[key])})
	}
	return true
}

// noTagWasInvalidated asks Redis, as the local tier may not have heard of an invalidation yet.
func (s *Set) noTagWasInvalidated(ctx context.Context, before Snapshot) (bool, error) {
	now, _, err := cacheguard.Fetch(ctx, s.Guard, s.anyTagKey(), cacheguard.Source[string]{SkipLocal: true})
	if errors.Is(err, cacheguard.ErrNotCached) {
		return false, nil
	}
	return now == before[s.anyTagKey()], err
}
