package cas

import (
	"context"

	"github.com/cacheguard/go/internal/redis/acl"
)

// SelfCheck checks whether the Store can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys that begin with the Prefix, that a value can be
// written, read and deleted, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO). It takes
// at most until ctx ends, or 10 seconds if ctx has no deadline. The error names what was refused.
func (s *Store) SelfCheck(ctx context.Context) error {
	key := acl.Name()
	if err := s.begin(ctx, "check", key); err != nil {
		return err
	}
	defer s.life.Done()
	return acl.CAS.SelfCheck(ctx, s.life, s.rdb, s.cfg.Prefix, func(ctx context.Context) error { return s.tryOut(ctx, key) })
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
