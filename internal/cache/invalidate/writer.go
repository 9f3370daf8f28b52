// Package invalidate sends the invalidations of a Guard, and repeats failed ones until they succeed.
package invalidate

import (
	"context"

	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Writer sends what must not be forgotten.
type Writer struct {
	Link     *send.Link
	Replicas int // have to acknowledge what is written
	Breakers *breaker.Set
	Life     *lifecycle.Life
	Journal  *report.Journal
	Notices  *tier.Notices
	Owner
}

// Owner is the Guard.
type Owner interface {
	Local() *tier.Local                     // nil: it has none
	Failed(op, key string, err error) error // reports that Redis failed, and returns the error for that
	Untold(op, key string, err error) error // does not report it
}

// write runs calls that must not be forgotten, all for one part of the keyspace, under RedisTimeout. Each command has
// its own error; if write itself returns an error, there are no commands: while the breaker is open, it is
// breaker.ErrOpen, at once, but for the last attempt of a Guard that is closed, which is always made. Only tasks may
// call it.
func (w *Writer) write(ctx context.Context, calls ...*script.Call) ([]*script.Reply, error) {
	if w.Breakers.Of(calls[0].Keys[0]).IsOpen() && w.Life.Ending.Err() == nil {
		return nil, breaker.ErrOpen
	}
	cmds := make([]*script.Reply, len(calls))
	for i, reply := range w.Link.RunApart(context.WithoutCancel(ctx), calls, w.Replicas) {
		cmds[i] = reply.Cmd
	}
	return cmds, nil
}
