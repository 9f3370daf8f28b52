package cas

import (
	"context"

	"github.com/cacheguard/go/internal/rights"
)

// SelfCheck finds out whether the Store can do its work, for use when a service starts: that Redis can be reached, that its
// user may run each command (docs/redis.md lists them) on keys that begin with the Prefix, that a value can be written, read
// and deleted, and that Redis evicts no keys (maxmemory-policy noeviction, where the user may ask with INFO). It waits until
// ctx ends, or for 10 seconds. The error names what was refused.
func (s *Store) SelfCheck(ctx context.Context) error {
	key := rights.Name()
	if err := s.begin(ctx, "check", key); err != nil {
		return err
	}
	defer s.life.Done()
	return rights.CAS.SelfCheck(ctx, s.life, s.rdb, s.cfg.Prefix, func(ctx context.Context) error { return s.tryOut(ctx, key) })
}

// tryOut writes a value, reads it and deletes it.
func (s *Store) tryOut(ctx context.Context, key string) error {
	if _, err := Swap(ctx, s, key, "", "value"); err != nil {
		return err
	}
	_, version, err := Get[string](ctx, s, key)
	if err != nil {
		return err
	}
	return Delete(ctx, s, key, version)
}
