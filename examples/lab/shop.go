package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/cacheguard/go/cacheguard"
)

// The hot key, as a Guard names it, and as a kind of thing and an ID.
const (
	hotKey  = hotKind + ":42"
	hotKind = "product"
	hotID   = 42
)

// entry is where a Guard keeps the hot key, and so do its rivals.
func entry(prefix string) string { return prefix + ":{" + hotKey + "}" }

// A shop reads and writes the product through a cache.
type shop interface {
	get(ctx context.Context) (answer, error)
	write(ctx context.Context) error
	forget(ctx context.Context) error                                    // what the cache has
	writeLate(ctx context.Context, intend bool, rest func() error) error // commits after the rest of the transaction
	close() error
}

// answer is a product, and how the shop came by it, in the words of cacheguard.
type answer struct {
	product product
	how     cacheguard.Outcome
}

// byHand has the cache that is usually written: GET, on a miss query and SET. When Redis fails, it queries.
type byHand struct {
	rdb *redis.Client
	in  *instance
	key string
	ttl time.Duration
}

func (s byHand) get(ctx context.Context) (a answer, err error) {
	cached, err := s.rdb.Get(ctx, s.key).Bytes()
	if err == nil {
		a.how = cacheguard.Hit
		return a, json.Unmarshal(cached, &a.product)
	}
	if a.how = cacheguard.Loaded; !errors.Is(err, redis.Nil) {
		a.how = cacheguard.Bypassed
	}
	if a.product, err = s.in.query(ctx); err != nil || a.how == cacheguard.Bypassed {
		return a, err
	}
	encoded, err := json.Marshal(a.product)
	if err == nil {
		_ = s.rdb.Set(ctx, s.key, encoded, s.ttl).Err() // what is not stored is queried again
	}
	return a, err
}

func (s byHand) write(ctx context.Context) error {
	if err := s.in.db.write(ctx); err != nil {
		return err
	}
	return s.rdb.Del(ctx, s.key).Err()
}

func (s byHand) forget(ctx context.Context) error { return s.rdb.Del(ctx, s.key).Err() }
func (s byHand) writeLate(ctx context.Context, _ bool, rest func() error) error {
	if err := errors.Join(s.in.db.statement(ctx), s.rdb.Del(ctx, s.key).Err(), rest()); err != nil {
		return err
	}
	s.in.db.commit()
	return nil
}

func (byHand) close() error { return nil }

// shared is byHand with the calls of an instance shared.
type shared struct {
	byHand
	group *singleflight.Group
}

func (s shared) get(ctx context.Context) (answer, error) {
	first := false
	got, err, _ := s.group.Do(hotKey, func() (any, error) {
		first = true
		return s.byHand.get(ctx)
	})
	a := got.(answer)
	if !first && a.how == cacheguard.Loaded {
		a.how = cacheguard.Shared
	}
	return a, err
}

// guarded is cacheguard.
type guarded struct {
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int, product]
	in       *instance
	put      bool // what was written
}

func newGuarded(in *instance, cfg cacheguard.Config, put bool) (shop, error) {
	guard, err := cacheguard.New(in.rdb, cfg)
	if err != nil {
		return nil, err
	}
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, product]{
		Name: hotKind,
		Load: func(ctx context.Context, _ int) (product, error) { return in.query(ctx) },
	})
	if err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	return guarded{guard, products, in, put}, nil
}

func (s guarded) get(ctx context.Context) (a answer, err error) {
	a.product, err = s.products.Get(context.WithValue(ctx, outcomeKey{}, &a.how), hotID)
	return a, err
}

// write keeps readers away from the old version, who then load the new one; or, with Put, have it from the writer.
func (s guarded) write(ctx context.Context) error {
	if s.put {
		return s.products.Put(ctx, hotID, func(ctx context.Context) (product, error) {
			err := s.in.db.write(ctx)
			return product{Version: s.in.db.version.Load()}, err
		})
	}
	return s.guard.Update(ctx, hotKey, s.in.db.write)
}

func (s guarded) forget(ctx context.Context) error { return s.guard.Invalidate(ctx, hotKey) }

// writeLate has the mistake that Intend is for: unless intend is set, only the statement is within an Update, and the commit comes after it.
func (s guarded) writeLate(ctx context.Context, intend bool, rest func() error) error {
	if !intend {
		if err := s.guard.Update(ctx, hotKey, s.in.db.statement); err != nil {
			return err
		}
		if err := rest(); err != nil {
			return err
		}
		s.in.db.commit()
		return nil
	}
	return s.intending(ctx, rest)
}

// intending writes in a transaction, under an intent.
func (s guarded) intending(ctx context.Context, rest func() error) error {
	in, err := s.guard.Intend(ctx, cacheguard.Changes{Keys: []string{hotKey}})
	if err != nil {
		return err
	}
	defer in.Done(ctx) // after an error
	if err := s.in.db.statement(ctx); err != nil {
		return err
	}
	if err := rest(); err != nil {
		return err
	}
	s.in.db.commit()
	return in.Done(ctx)
}

func (s guarded) close() error { return s.guard.Close() }

// outcomeKey is where the context of a Get says who wants to know its outcome.
type outcomeKey struct{}

// noteOutcome notes the outcome for those who want to know.
func noteOutcome(ctx context.Context, how cacheguard.Outcome) {
	if want, ok := ctx.Value(outcomeKey{}).(*cacheguard.Outcome); ok {
		*want = how
	}
}
