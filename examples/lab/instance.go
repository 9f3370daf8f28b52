package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/cacheguard/go/cacheguard"
)

const (
	leaseTTL = 3 * time.Second
	staleFor = time.Minute
	localTTL = time.Second
)

// instance is one of the service, with its own connections to Redis and its own Guard, as if in a process of its own.
type instance struct {
	name   string
	shop   shop
	db     *database
	ledger *ledger
	wire   *wire
	rdb    *redis.Client
	ctx    context.Context //nolint:containedctx // it is the life of the instance
	die    context.CancelFunc

	// Under the mutex of the ledger.
	loading int // queries that run or queue
	answers map[cacheguard.Outcome]int64
}

// openInstance opens the i-th instance with the present settings.
func (l *lab) openInstance(i int, s settings) (*instance, error) {
	network, addr := l.server.Endpoint()
	w, err := openWire(network, addr, l.redis)
	if err != nil {
		return nil, err
	}
	w.late.Store(int64(s.late()))
	in := &instance{
		name: fmt.Sprintf("instance %d", i+1), db: l.db, ledger: l.ledger, wire: w,
		rdb: l.server.NewClientThrough(w.listener.Addr().String(), l.patience), answers: make(map[cacheguard.Outcome]int64),
	}
	in.ctx, in.die = context.WithCancel(context.Background())
	switch hand := (byHand{in.rdb, in, entry(l.prefix()), s.ttl()}); s.Mode {
	case modeHand:
		in.shop = hand
	case modeFlight:
		in.shop = shared{hand, new(singleflight.Group)}
	default:
		if in.shop, err = newGuarded(in, l.config(in, s), s.Put); err != nil {
			return nil, errors.Join(err, in.rdb.Close(), w.close())
		}
	}
	return in, nil
}

// config returns the Config of an instance's Guard.
func (l *lab) config(in *instance, s settings) cacheguard.Config {
	note := func(text string) { l.ledger.note(in.name + " " + text) }
	cfg := cacheguard.Config{Prefix: l.prefix(), TTL: s.ttl(), LeaseTTL: leaseTTL, RedisTimeout: l.patience}
	cfg.Observers = []cacheguard.Observer{cacheguard.ObserverFunc(func(ctx context.Context, e cacheguard.Event) {
		switch e.What {
		case cacheguard.EventGet:
			noteOutcome(ctx, e.Outcome)
		case cacheguard.EventTakeover:
			note("took over the load of an instance that has died.")
		case cacheguard.EventLeaseLost:
			note("lost the lease of its load.")
		case cacheguard.EventRejected:
			note("may not store what it loaded: the product was written or deleted since.")
		case cacheguard.EventBreaker:
			if e.On {
				note("stops asking Redis for a while, and loads without it.")
			} else {
				note("asks Redis again.")
			}
		}
	})}
	if !s.Hedge {
		cfg.HedgeAfter = -1
	}
	if s.Stale {
		cfg.StaleFor = staleFor
	}
	if s.Local {
		cfg.Local = cacheguard.LocalConfig{MaxEntries: 100, TTL: localTTL}
	}
	return cfg
}

// query is the database, as the instance sees it.
func (in *instance) query(ctx context.Context) (product, error) {
	in.ledger.queryBegan(in)
	defer in.ledger.queryEnded(in)
	return in.db.query(ctx)
}

// get asks the instance. The call fails when the instance dies.
func (in *instance) get(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(in.ctx, cancel)()
	return in.shop.get(ctx)
}

func (in *instance) alive() bool { return in.ctx.Err() == nil }

// kill ends the instance as a crash would: its connections go first, so that it can give nothing back, its lease included.
func (in *instance) kill() {
	in.wire.set(down)
	in.die()
}

// close joins what an instance that was killed leaves behind.
func (in *instance) close() error {
	return errors.Join(in.shop.close(), in.rdb.Close(), in.wire.close())
}
