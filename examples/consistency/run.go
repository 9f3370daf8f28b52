package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// The instances share the database and Redis, and nothing else. Each has its readers and one writer.
const (
	instances = 3
	readers   = 8
	readPause = 4 * time.Millisecond // on average, between two reads of a reader
)

// result is what came of a run.
type result struct {
	pattern
	*ledger
	commands int64
}

// stage is where the runs take place.
type stage struct {
	redis *backends.RedisServer
	db    *sqldb.DB
	settings
}

// run lets readers and writers loose on a pattern's shops.
func (st stage) run(ctx context.Context, p pattern) (r result, err error) {
	db, err := openPrices(ctx, st.db, st.products, st.query)
	if err != nil {
		return r, err
	}
	prefix := "consistency-" + strings.ToLower(rand.Text()[:10]) // a real Redis may have other users
	defer func() {
		background := context.WithoutCancel(ctx)
		err = errors.Join(err, st.db.Drop(background), st.redis.Delete(background, prefix+":"))
	}()
	var sent backends.Commands
	var shops []shop
	for range instances {
		client := st.redis.NewCountedClient(&sent)
		defer client.Close()
		s, err := p.open(client, db, prefix)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		shops = append(shops, s)
	}
	l, err := st.load(ctx, shops)
	return result{p, l, sent.Sent()}, err
}

// load reads and writes for the duration, lets what is under way finish, and returns what came of it. The first error ends
// it all.
func (st stage) load(ctx context.Context, shops []shop) (*ledger, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	open, closing := context.WithTimeout(ctx, st.duration)
	defer closing()
	c := crowd{ctx, open, newLedger(), shops, st.settings}
	var running sync.WaitGroup
	work := func(f func(int) error, i int) {
		running.Go(func() { // owner: load; stop: open and ctx; joined below
			if err := f(i); err != nil {
				cancel(err)
			}
		})
	}
	for i := range shops {
		work(c.write, i)
		for range readers {
			work(c.read, i)
		}
	}
	running.Wait()
	return c.ledger, context.Cause(ctx)
}

// crowd is the readers and writers.
type crowd struct {
	ctx    context.Context //nolint:containedctx // of the run
	open   context.Context //nolint:containedctx // ends when no new calls are to begin
	ledger *ledger
	shops  []shop
	settings
}

// read reads prices at an instance.
func (c crowd) read(instance int) error {
	for c.pause(readPause) {
		if err := c.look(instance, c.product()); err != nil {
			return err
		}
	}
	return nil
}

// write raises prices at an instance, and looks at another one as soon as that is done.
func (c crowd) write(instance int) error {
	for c.pause(c.between) {
		id, start := c.product(), time.Now()
		cents, err := c.shops[instance].Raise(c.ctx, id)
		if err != nil {
			return fmt.Errorf("raise the price of %d: %w", id, err)
		}
		c.ledger.updated(id, cents, start)
		if err := c.look((instance+1)%len(c.shops), id); err != nil {
			return err
		}
	}
	return nil
}

func (c crowd) look(instance, id int) error {
	done := c.ledger.reading(id)
	cents, err := c.shops[instance].Price(c.ctx, id)
	if err != nil {
		return fmt.Errorf("price of %d: %w", id, err)
	}
	done(cents)
	return nil
}

func (c crowd) product() int { return 1 + mathrand.IntN(c.products) }

func (c crowd) pause(mean time.Duration) bool {
	return program.Pause(c.open, mean/2+mathrand.N(mean))
}
