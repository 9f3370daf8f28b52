// Package dataloader puts a cache behind the dataloaders of a GraphQL server, here those of github.com/vikstrous/dataloadgen, which gqlgen recommends. Use it where
// resolvers ask for things one by one: the dataloader gathers what one request asks for, and GetMany takes it from the cache, or loads what is missing together.
//
// A dataloader remembers what it returned, and hears of no invalidation: make one for each request, and drop it with the request. A batch runs with the context
// of the first caller, which is fine within one request.
package dataloader

import (
	"context"

	"github.com/vikstrous/dataloadgen"

	"github.com/cacheguard/go/cacheguard"
)

// New returns a dataloader for one request. Load returns dataloadgen.ErrNotFound for what does not exist.
func New[K comparable, V any](cache *cacheguard.Cache[K, V], options ...dataloadgen.Option) *dataloadgen.Loader[K, V] {
	return dataloadgen.NewMappedLoader(func(ctx context.Context, keys []K) (map[K]V, error) {
		found, err := cache.GetMany(ctx, keys)
		if err != nil {
			err = byKey(cache, keys, err)
		}
		return found, err
	}, options...)
}

// byKey gives each key its own error, so that one that failed fails no other. An error that is of no single key is everybody's.
func byKey[K comparable, V any](cache *cacheguard.Cache[K, V], keys []K, err error) error {
	failed := make(map[string]error)
	if !collect(err, failed) {
		return err
	}
	each := make(dataloadgen.MappedFetchError[K])
	for _, k := range keys {
		if err := failed[cache.Key(k)]; err != nil {
			each[k] = err
		}
	}
	return each
}

// collect puts the errors of keys into failed, and reports whether there are no others.
func collect(err error, failed map[string]error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks at each part of what was joined
	case *cacheguard.KeyError:
		failed[e.Key] = e.Err
		return true
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !collect(part, failed) {
				return false
			}
		}
		return true
	}
	return false
}
