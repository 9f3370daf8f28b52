// Crowd is the quickstart: the three caches that it compares are in this file. The rest is the crowd, callers of several instances of
// a shop, who all want one product whose cache entry keeps expiring, and what counts what that does to the database.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/program"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	return compared(
		contestant{Name: "by hand", Open: openByHand},
		contestant{Name: "singleflight", Open: openShared},
		contestant{Name: "cacheguard", Open: openGuarded},
	)
}

func key(id int) string { return fmt.Sprintf("product:%d", id) }

// guarded is all it takes: one Guard for each process, and the query in the place where a cache would miss.
type guarded struct {
	guard *cacheguard.Guard
	db    *database
}

func openGuarded(rdb *redis.Client, db *database, prefix string, ttl time.Duration) (shop, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: ttl})
	return guarded{guard, db}, err
}

func (s guarded) Product(ctx context.Context, id int) (product, error) {
	return cacheguard.Get(ctx, s.guard, key(id), func(ctx context.Context) (product, error) {
		return s.db.Product(ctx, id) // runs once, however many instances and callers ask
	})
}

func (s guarded) Close() error { return s.guard.Close() }

// byHand has the cache that is usually written: ask Redis, on a miss ask the database and store what it said. When the entry
// expires, everybody who asks misses it, and everybody goes to the database.
type byHand struct {
	rdb    *redis.Client
	db     *database
	prefix string
	ttl    time.Duration
}

func openByHand(rdb *redis.Client, db *database, prefix string, ttl time.Duration) (shop, error) {
	return byHand{rdb, db, prefix, ttl}, nil
}

func (s byHand) Product(ctx context.Context, id int) (p product, err error) {
	entry := s.prefix + ":{" + key(id) + "}" // where a Guard has it too
	cached, err := s.rdb.Get(ctx, entry).Bytes()
	if err == nil {
		return p, json.Unmarshal(cached, &p)
	}
	if !errors.Is(err, redis.Nil) {
		return p, err
	}
	if p, err = s.db.Product(ctx, id); err != nil {
		return p, err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	return p, s.rdb.Set(ctx, entry, encoded, s.ttl).Err()
}

func (byHand) Close() error { return nil }

// shared is byHand with the calls of an instance shared. Each instance still asks the database, and a caller shares the fate of
// the one that came first: if that is cancelled, so are all.
type shared struct {
	byHand
	group *singleflight.Group
}

func openShared(rdb *redis.Client, db *database, prefix string, ttl time.Duration) (shop, error) {
	return shared{byHand{rdb, db, prefix, ttl}, new(singleflight.Group)}, nil
}

func (s shared) Product(ctx context.Context, id int) (product, error) {
	p, err, _ := s.group.Do(key(id), func() (any, error) { return s.byHand.Product(ctx, id) })
	if err != nil {
		return product{}, err
	}
	return p.(product), nil
}

// settings are what the flags say.
type settings struct {
	instances int
	callers   int // of each instance
	duration  time.Duration
	ttl       time.Duration
	query     time.Duration
}

// short is what -short changes.
var short = map[string]string{"callers": "25", "duration": "2s", "ttl": "400ms"}

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.instances, "instances", 8, "`number` of instances of the service")
	f.IntVar(&s.callers, "callers", 100, "`number` of concurrent callers of each instance")
	f.DurationVar(&s.duration, "duration", 2500*time.Millisecond, "how long each of the runs takes")
	f.DurationVar(&s.ttl, "ttl", 500*time.Millisecond, "how long an entry lives in the cache")
	f.DurationVar(&s.query, "query", 80*time.Millisecond, "how long a database query takes")
}

// check refuses what would run into the limits of a laptop, or be over before the watcher could count anything.
func (s *settings) check() error {
	switch {
	case s.instances < 1 || s.instances > 64:
		return fmt.Errorf("-instances: %d is not between 1 and 64", s.instances)
	case s.callers < 1 || s.callers > 1000:
		return fmt.Errorf("-callers: %d is not between 1 and 1000", s.callers)
	case s.ttl < 100*time.Millisecond:
		return fmt.Errorf("-ttl: %v is shorter than 100ms", s.ttl)
	case s.query < 20*time.Millisecond || s.query > 10*time.Second:
		return fmt.Errorf("-query: %v is not between 20ms and 10s", s.query)
	case s.duration <= s.ttl+s.query:
		return fmt.Errorf("-duration: %v is too short to see an entry expire: it takes more than -ttl and -query together (%v)",
			s.duration, s.ttl+s.query)
	}
	return nil
}
