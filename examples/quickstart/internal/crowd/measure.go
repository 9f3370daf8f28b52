package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/cacheguard/go/examples/internal/backends"
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
