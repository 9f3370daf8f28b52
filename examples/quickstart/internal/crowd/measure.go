package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// stage is where the runs take place.
type stage struct {
	redis    *backends.RedisServer
	db       *database
	settings settings
}

// A sight is what can be seen of a run while it lasts.
type sight struct{ expiries, queries int64 }

// opening is called when a run may begin, with a func that tells how the run goes. The run ends with the context that it
// returns, and then over is called.
type opening func(see func() sight) (open context.Context, over func())

// measure lets the crowd loose on a fleet of the contestant's shops, and returns what came of it.
func (st stage) measure(ctx context.Context, c contestant, begin opening) (m measured, err error) {
	prefix := "quickstart-" + strings.ToLower(rand.Text()[:10]) // a real Redis may have other users
	var count backends.Commands
	f, err := openFleet(st.redis, st.db, c, prefix, st.settings, &count)
	if err != nil {
		return m, err
	}
	watching := st.redis.NewClient() // not counted
	defer func() {
		err = errors.Join(err, f.close(), watching.Close(), st.redis.Delete(context.WithoutCancel(ctx), prefix+":"))
	}()
	if err := f.warmUp(ctx); err != nil {
		return m, err
	}

	queries, sent := st.db.queries(), count.Sent()
	w := watch(ctx, watching, entryKey(prefix))
	open, over := begin(func() sight { return sight{w.expiries.Load(), st.db.queries() - queries} })
	m.calls = crowd(ctx, open, f.shops, st.settings.callers)
	closed := f.closeShops()
	m.expiries, m.blind, err = w.end()
	err = errors.Join(err, closed)
	over()
	m.queries, m.commands = st.db.queries()-queries, count.Sent()-sent
	return m, err
}

// measured is what came of a run.
type measured struct {
	calls
	queries  int64
	expiries int64         // as the watcher saw them
	blind    time.Duration // the longest time that the watcher did not look
	commands int64         // to Redis, by the shops
}

// perExpiry returns how many queries an expiry cost. Without expiries there is no answer, and it returns 0.
func (m measured) perExpiry() float64 {
	if m.expiries == 0 {
		return 0
	}
	return float64(m.queries) / float64(m.expiries)
}

// perCall returns how many commands to Redis a call cost, 0 if there were no calls.
func (m measured) perCall() float64 {
	if len(m.waits)+m.failed == 0 {
		return 0
	}
	return float64(m.commands) / float64(len(m.waits)+m.failed)
}

// wait returns the time within which the given share of the calls were answered.
func (m measured) wait(share float64) time.Duration { return table.Quantile(m.waits, share) }

// broken says why the run with the guard is not what the guard promises: one query for each expiry, and an answer for
// each call. It is empty if all is well.
func (m measured) broken(query time.Duration) string {
	switch {
	case m.failed > 0:
		return fmt.Sprintf("NOT AS PROMISED: %d calls failed with the guard; the first said: %v", m.failed, m.err)
	case m.expiries == 0:
		return "NOT AS PROMISED: the entry did not expire during the run with the guard"
	case m.queries != m.expiries && m.blind < query:
		return fmt.Sprintf("NOT AS PROMISED: %d queries for %d expiries with the guard", m.queries, m.expiries)
	}
	return ""
}

// unclear says why nobody knows whether the run is what the guard promises. It is empty if that is known.
func (m measured) unclear() string {
	if m.queries == m.expiries {
		return ""
	}
	return fmt.Sprintf("%s: %d queries for %d expiries with the guard, but the watcher was held up for %v, in which it may have missed some",
		program.Busy, m.queries, m.expiries, m.blind.Round(time.Millisecond))
}
