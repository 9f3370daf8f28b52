package scale

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// phase is what happened between two looks.
type phase struct {
	spent  server.Usage
	client time.Duration // processor time of this process
}

// look is where the server and this process stand.
type look struct {
	at     time.Time
	usage  server.Usage
	client time.Duration
	count  int // of the fleet's looks so far
}

// look asks the server.
func (f *fleet) look(ctx context.Context) (l look, err error) {
	l.at, l.client = time.Now(), scenario.ProcessTime()
	l.usage, err = f.redis.Usage(ctx)
	f.looks++
	l.count = f.looks
	return l, err
}

// since is what happened between the looks, without what looking costs, and without what happens anyway.
func (f *fleet) since(before, now look) phase {
	looks, seconds := float64(now.count-before.count), now.at.Sub(before.at).Seconds()
	without := func(all, look, idle time.Duration) time.Duration {
		return all - time.Duration(looks*float64(look)+seconds*float64(idle))
	}
	p := phase{spent: now.usage.Since(before.usage)}
	p.spent.CPU = without(p.spent.CPU, f.lookServer, f.idleServer)
	p.client = without(now.client-before.client, f.lookClient, f.idleClient)
	return p
}

// priceTime finds out what goes on when nobody asks for anything.
func (f *fleet) priceTime(ctx context.Context, watched time.Duration) error {
	f.idleServer, f.idleClient = 0, 0
	before, err := f.look(ctx)
	if err != nil {
		return err
	}
	scenario.Pause(ctx, watched)
	after, err := f.look(ctx)
	did, seconds := f.since(before, after), after.at.Sub(before.at).Seconds()
	f.idleServer = time.Duration(float64(max(did.spent.CPU, 0)) / seconds)
	f.idleClient = time.Duration(float64(max(did.client, 0)) / seconds)
	return err
}

// priceLooks finds out what a look costs.
func (f *fleet) priceLooks(ctx context.Context) error {
	const times, apart = 21, time.Millisecond // as far as those of a wave are
	var onServer, here []time.Duration
	last, err := f.look(ctx)
	for range times {
		scenario.Pause(ctx, apart)
		now, lookErr := f.look(ctx)
		if err == nil {
			err = lookErr
		}
		onServer = append(onServer, now.usage.CPU-last.usage.CPU)
		here = append(here, now.client-last.client)
		last = now
	}
	f.lookServer, f.lookClient = median(onServer), median(here)
	return err
}

func median[N ~int64 | ~float64](all []N) N {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
