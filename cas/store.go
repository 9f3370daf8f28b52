package cas

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Redis is what a Store needs of a client: *redis.Client (also a Sentinel failover client) and *redis.ClusterClient have
// it. A *redis.Ring is refused: a key could have two values when one process does not reach a shard. The Store never
// configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Store keeps values in Redis. It is safe for concurrent use.
type Store struct {
	rdb    Redis
	redis  *send.Sender
	cfg    Config
	recent int // how many writes of a key are remembered
	life   *lifecycle.Life
}

// New returns a Store. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
// It refuses clients with a client-side cache, and cluster clients that may read from replicas: they would read
// replaced values.
func New(rdb Redis, cfg Config) (*Store, error) {
	if err := errors.Join(goredis.CheckPrimary(rdb), goredis.CheckOnePlace(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("cas: %w", err)
	}
	cfg = cfg.withDefaults()
	life := lifecycle.New()
	return &Store{
		rdb: rdb, redis: send.NewSender(rdb, cfg.RedisTimeout, life), cfg: cfg, recent: recentWrites, life: life,
	}, nil
}

// Close returns when everything that the Store started has ended; when Redis hangs, that takes the client's time-outs.
// Calls that wait to try again return ErrClosed. Close may be called more than once, and always returns nil.
func (s *Store) Close() error {
	if s == nil {
		return nil // New failed: there is nothing to close
	}
	s.life.Close(ErrClosed, nil)
	s.redis.Close()
	return nil
}

// begin begins an operation. Each nil is followed by one life.Done.
func (s *Store) begin(ctx context.Context, op, key string) error {
	switch {
	case s == nil:
		return errNilStore
	case key == "":
		return errEmptyKey
	case ctx.Err() != nil:
		return failed(op, key, lifecycle.Ended(ctx))
	case !s.life.Begin():
		return ErrClosed
	}
	return nil
}

// valueKey has an ending of its own, so that a Guard's key of that name is another one.
func (s *Store) valueKey(key string) string { return keys.Tagged(s.cfg.Prefix, key) + ":cas" }

// read returns the string at the key, which is empty when there is none.
func (s *Store) read(ctx context.Context, key string) (string, error) {
	reply, err := s.redis.Ask(ctx, script.Call{Script: get, Keys: []string{s.valueKey(key)}}, nil)
	switch {
	case errors.Is(err, redis.Nil):
		return "", nil
	case err != nil && ctx.Err() != nil:
		return "", lifecycle.Ended(ctx)
	case err != nil:
		return "", err
	}
	return reply.Text()
}
