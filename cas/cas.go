package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Get returns the value of the key and its version, or ErrNotFound.
func Get[V any](ctx context.Context, s *Store, key string) (value V, version Version, err error) {
	if err := s.begin(ctx, "get", key); err != nil {
		return value, "", err
	}
	defer s.life.Done()
	stored, err := s.read(ctx, key)
	switch {
	case err != nil:
		return value, "", failed("get", key, err)
	case stored == "":
		return value, "", failed("get", key, ErrNotFound)
	}
	value, version, err = decode[V](s.cfg.Codec, stored)
	if err != nil {
		return value, version, failed("get", key, err)
	}
	return value, version, nil
}

// Swap stores the value if the key has the version old, and returns its new version. The TTL begins anew. With the empty Version
// it stores the value if there is none. ErrConflict says that the key has another version. ErrUncertain says that it is not known
// whether the value was stored; if it was, it has the returned version.
func Swap[V any](ctx context.Context, s *Store, key string, old Version, value V) (Version, error) {
	if err := s.begin(ctx, "swap", key); err != nil {
		return "", err
	}
	defer s.life.Done()
	w := write{old: old, token: newVersion()}
	var err error
	if w.value, err = encode(s.cfg.Codec, w.token, value); err != nil {
		return "", failed("swap", key, err)
	}
	if err := s.swap(ctx, key, &w); err != nil {
		if errors.Is(err, ErrUncertain) {
			return w.token, err
		}
		return "", err
	}
	return w.token, nil
}

// Delete removes the value if the key has the version old. ErrConflict says that it has another version or no value,
// and ErrUncertain that it is not known whether the value was removed.
func Delete(ctx context.Context, s *Store, key string, old Version) error {
	if err := s.begin(ctx, "delete", key); err != nil {
		return err
	}
	defer s.life.Done()
	if old == "" {
		return failed("delete", key, errors.New("version is empty"))
	}
	return s.remove(ctx, key, &write{old: old, token: newVersion()})
}

// Update calls change with the current value, stores the result, and returns it. If somebody else was faster, it calls
// change again with the newer value, after a random pause, at most MaxAttempts times: so change must have no side
// effects. If there is no value, old is the zero value and found is false.
//
// An error of change ends the Update and is returned as it is; nothing was stored. A panic of change passes through.
// ErrConflict says that others were faster MaxAttempts times. ErrUncertain says that it is not known whether the returned
// value was stored.
func Update[V any](ctx context.Context, s *Store, key string, change func(old V, found bool) (V, error)) (V, error) {
	var none V
	for attempt := 1; ; attempt++ {
		old, version, err := Get[V](ctx, s, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return none, err
		}
		next, err := change(old, err == nil)
		if err != nil {
			return none, err
		}
		_, err = Swap(ctx, s, key, version, next)
		switch {
		case err == nil || errors.Is(err, ErrUncertain):
			return next, err
		case !errors.Is(err, ErrConflict):
			return none, err
		case attempt == s.cfg.MaxAttempts:
			return none, fmt.Errorf("cas: update %q: %w, %d times", errs.Short(key), ErrConflict, attempt)
		}
		if !s.life.Pause(ctx, attempt-1) {
			return none, failed("update", key, cmp.Or(lifecycle.Ended(ctx), ErrClosed))
		}
	}
}
