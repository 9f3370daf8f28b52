// Package refresh loads what was invalidated, by anybody, and was asked for here lately, before somebody asks again. It
// hears of that as an Observer, and loads with Cache.Warm: once in the fleet, in slots that no caller's load waits for.
// A writer that knows the new value has no need of it: it calls Cache.Put. docs/refresh.md says when it pays. It knows
// of package cacheguard what its documentation says, and nothing more.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/cacheguard/go/cacheguard"
)

// Config says what is refreshed. The zero Config is fine, but for Kind.
type Config[K comparable] struct {
	// Kind is the Name of the Cache.
	Kind string

	// Lately is for how long a thing that was asked for counts as wanted. Default: 1 minute.
	Lately time.Duration

	// MaxKeys is how many of these are known at most; about 100 bytes each and the key. Those that are asked for least
	// give way. Default: 10,000.
	MaxKeys int

	// Parse is the thing whose key has the text, as CacheConfig.Key returns it. Default: if K is an integer or a
	// string, or a type of one, the text itself.
	Parse func(text string) (K, error)

	// Warm is for the calls of Cache.Warm.
	Warm cacheguard.WarmConfig

	// OnError is called, by Run, with what Warm or Parse fails with: whoever asks next loads. Default: not at all.
	OnError func(error)
}

const (
	lately  = time.Minute
	maxKeys = 10_000
	rests   = 10 // times as long as a look at all keys took, before the next one
)

// Cache is a *cacheguard.Cache.
type Cache[K comparable] interface {
	Name() string
	Warm(ctx context.Context, ids iter.Seq[K], cfg cacheguard.WarmConfig) (cacheguard.Warmed, error)
}

// Refresher is an Observer. It hears of what others invalidate if its Guard has a Config.Local (MaxBytes of a few MiB
// do), and of nothing without.
type Refresher[K comparable] struct {
	cfg    Config[K]
	wanted *otter.Cache[string, struct{}] // keys that were asked for lately
	wake   chan struct{}                  // has one if there is something to do
	loaded atomic.Uint64

	mu  sync.Mutex
	due map[string]bool // keys that were invalidated, and are wanted
	all bool            // any may have been
}

// New returns a Refresher for Config.Observers. It does nothing until Run is called.
func New[K comparable](cfg Config[K]) (*Refresher[K], error) {
	if cfg.Parse == nil {
		cfg.Parse = parser[K]()
	}
	if cfg.Lately == 0 {
		cfg.Lately = lately
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = maxKeys
	}
	switch {
	case cfg.Kind == "":
		return nil, errors.New("refresh: Config.Kind is empty")
	case cfg.Parse == nil:
		return nil, fmt.Errorf("refresh: Config.Parse is nil, and %v is neither an integer nor a string", reflect.TypeFor[K]())
	case cfg.Lately < 0:
		return nil, fmt.Errorf("refresh: Config.Lately: %v is negative", cfg.Lately)
	case cfg.MaxKeys < 0:
		return nil, fmt.Errorf("refresh: Config.MaxKeys: %d is negative", cfg.MaxKeys)
	}
	wanted, err := otter.New(&otter.Options[string, struct{}]{
		MaximumSize: cfg.MaxKeys, ExpiryCalculator: otter.ExpiryAccessing[string, struct{}](cfg.Lately),
	})
	if err != nil {
		return nil, fmt.Errorf("refresh: %w", err)
	}
	return &Refresher[K]{cfg: cfg, wanted: wanted, wake: make(chan struct{}, 1), due: make(map[string]bool)}, nil
}

// parser parses what the default of CacheConfig.Key makes; nil: there is no such default.
func parser[K comparable]() func(string) (K, error) {
	switch of := reflect.TypeFor[K](); of.Kind() {
	case reflect.String:
		return func(text string) (k K, err error) {
			reflect.ValueOf(&k).Elem().SetString(text)
			return k, nil
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(text string) (k K, err error) {
			n, err := strconv.ParseInt(text, 10, of.Bits())
			reflect.ValueOf(&k).Elem().SetInt(n)
			return k, err
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(text string) (k K, err error) {
			n, err := strconv.ParseUint(text, 10, of.Bits())
			reflect.ValueOf(&k).Elem().SetUint(n)
			return k, err
		}
	default:
		return nil
	}
}

// Observe is for the Guard.
func (r *Refresher[K]) Observe(_ context.Context, e cacheguard.Event) {
	switch e.What {
	case cacheguard.EventGet:
		if e.Kind == r.cfg.Kind && e.Key != "" {
			if _, is := r.wanted.GetIfPresent(e.Key); !is {
				r.wanted.Set(e.Key, struct{}{})
			}
		}
	case cacheguard.EventInvalidated:
		if e.Kind == r.cfg.Kind || e.Key == "" && e.Kind == "" {
			r.note(e.Key)
		}
	case cacheguard.EventDropped, cacheguard.EventForgotten:
		r.note("")
	}
}

// note notes that a key was invalidated; empty: any may have been.
func (r *Refresher[K]) note(key string) {
	if key != "" {
		if _, is := r.wanted.GetEntryQuietly(key); !is {
			return
		}
	}
	r.mu.Lock()
	if key == "" {
		r.all = true
	} else {
		r.due[key] = true
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // there is one
	}
}

// Loaded is how many things Run has loaded so far.
func (r *Refresher[K]) Loaded() uint64 { return r.loaded.Load() }

// Run refreshes until ctx ends, and returns its cause, or ErrClosed as soon as it meets a closed Guard. One Run at a
// time. Of a key that is invalidated, it loads that key; of a tag, of all of the Kind, or if messages may have been
// missed, it looks at all keys that are wanted, and then at none for ten times as long as that took.
func (r *Refresher[K]) Run(ctx context.Context, cache Cache[K]) error {
	if cache.Name() != r.cfg.Kind {
		return fmt.Errorf("refresh: the Cache is %q, and Config.Kind is %q", cache.Name(), r.cfg.Kind)
	}
	var looks <-chan time.Time // nil: at once
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.wake:
		case <-looks:
			looks = nil
		}
		keys, all := r.take(looks == nil)
		begun := time.Now()
		done, err := cache.Warm(ctx, r.things(keys), r.cfg.Warm)
		r.loaded.Add(uint64(done.Loaded))
		switch {
		case errors.Is(err, cacheguard.ErrClosed):
			return err
		case err != nil && ctx.Err() == nil:
			r.failed(err)
		}
		if all {
			looks = time.After(rests * time.Since(begun))
		}
	}
}

// take takes the keys that are due: all that are wanted, if that is to be looked at, and may be.
func (r *Refresher[K]) take(look bool) (keys iter.Seq[string], all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.due
	r.due = make(map[string]bool)
	if all = r.all && look; all {
		r.all = false
		return r.wanted.Keys(), true
	}
	return func(yield func(string) bool) {
		for key := range due {
			if !yield(key) {
				return
			}
		}
	}, false
}

func (r *Refresher[K]) things(keys iter.Seq[string]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for key := range keys {
			k, err := r.cfg.Parse(strings.TrimPrefix(key, r.cfg.Kind+":"))
			if err != nil {
				r.failed(fmt.Errorf("refresh: Config.Parse of key %q: %w", key, err))
				continue
			}
			if !yield(k) {
				return
			}
		}
	}
}

func (r *Refresher[K]) failed(err error) {
	if r.cfg.OnError != nil {
		r.cfg.OnError(err)
	}
}
