package write

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

const (
	most   = 1024 // bounds a batch. Redis takes some 10 µs for each, and other clients come in between
	atOnce = 2    // batches of a part
)

// request is what Redis is asked about a target, and how that ended.
type request struct {
	target
	text string // of the change; empty: it is not announced
	told string // the notice; empty: the next one

	place int    // of the change
	since uint64 // when it failed last, if it is pending

	reply *script.Reply
	err   error // as callers get it
}

func requests(targets []target, text string) []request {
	all := make([]request, len(targets))
	for i, t := range targets {
		all[i] = request{target: t, text: text}
	}
	return all
}

// failed joins the errors of the requests.
func failed(requests []request) error {
	var all []error
	for i := range requests {
		if err := requests[i].err; err != nil {
			all = append(all, err)
		}
	}
	return errs.Join(all...)
}

// ask runs a call for each target, and waits for all of them, even if ctx has ended: the source has been written, and
// whether that was told must not depend on the patience of somebody's client. RedisTimeout bounds the wait. The
// requests end in the order of their parts.
func (w *Writes) ask(ctx context.Context, op string, all []request, call func(sort, *request) *script.Call) {
	inParts(all, func(part []request) { _ = w.askPart(ctx, op, part, call) }) // each has its error
}

// inParts calls f for the requests of each part of the keyspace at once, as parts fail separately, and waits for all.
func inParts(all []request, f func(part []request)) {
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.part, b.part) })
	var asking sync.WaitGroup
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(r request) bool { return r.part != all[0].part })
		if n < 0 {
			f(all)
			break
		}
		part := all[:n]
		asking.Go(func() { f(part) }) // joined below
		all = all[n:]
	}
	asking.Wait()
}

// askPart does so for one part, in batches, of which one is prepared while Redis has another. If Redis answers nothing
// of one, what has not begun is not tried, and the part is away.
func (w *Writes) askPart(ctx context.Context, op string, part []request, call func(sort, *request) *script.Call) (away error) {
	if len(part) <= most {
		return w.askBatch(ctx, op, part, call)
	}
	gone, under := make(chan error, atOnce), make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for len(part) > 0 {
		if under <- struct{}{}; len(gone) > 0 {
			break
		}
		batch := part[:min(len(part), most)]
		part = part[len(batch):]
		asking.Go(func() { // joined below
			if away := w.askBatch(ctx, op, batch, call); away != nil {
				gone <- away
			}
			<-under
		})
	}
	asking.Wait()
	select {
	case away = <-gone:
		w.untold(op, part, away)
	default:
	}
	return away
}

// untold is for what is not tried.
func (w *Writes) untold(op string, all []request, why error) {
	for i := range all {
		all[i].err = w.Owner.Untold(op, all[i].shown(all[i].target), why)
	}
}

func (w *Writes) askBatch(ctx context.Context, op string, batch []request, call func(sort, *request) *script.Call) (away error) {
	calls := make([]*script.Call, len(batch))
	for i := range batch {
		r := &batch[i]
		if r.told == "" {
			r.told = r.notice(r.target)
		}
		calls[i] = call(r.sort, r)
	}
	replies, err := w.write(ctx, batch[0].part, calls)
	for i := range batch {
		r, reason := &batch[i], err
		if err == nil {
			r.reply, reason = replies[i], replies[i].Err()
		}
		if op == "invalidate" && script.Says(reason, "TRYAGAIN") {
			reason = w.despiteMove(ctx, r)
		}
		w.note(op, r, reason)
	}
	answered := slices.ContainsFunc(batch, func(r request) bool { return r.err == nil })
	if first := errors.Unwrap(batch[0].err); !answered && breaker.Unavailable(first) {
		return first
	}
	return nil
}

// note notes how a request ended.
func (w *Writes) note(op string, r *request, reason error) {
	r.forget(r.target) // also after an error, as Redis may have removed it
	r.err = nil
	if reason != nil {
		w.Breakers.Failed(reason)
		r.err = w.Owner.Failed(op, r.shown(r.target), reason)
	} else {
		w.Journal.RedisDid(op)
	}
}

// despiteMove removes what a call should have removed, which Redis refused because the slot is being moved and some of
// the keys are not there. It goes in steps of one key each. A change that the call should have ended expires.
func (w *Writes) despiteMove(ctx context.Context, r *request) error {
	for _, step := range r.steps(r) {
		replies, err := w.write(ctx, r.part, step)
		for _, reply := range replies {
			err = errs.Join(err, reply.Err())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write runs calls that must not be forgotten, all for one part of the keyspace, under RedisTimeout. Each has its own
// error; if write itself returns one, there are no replies: while the breaker is open, it is breaker.ErrOpen, at once,
// but for the last attempt of a Guard that is closed, which is always made. Only tasks may call it.
func (w *Writes) write(ctx context.Context, part int, calls []*script.Call) ([]*script.Reply, error) {
	if b := w.Breakers.Breaker(part); b.IsOpen() && w.Life.Ending.Err() == nil {
		return nil, b.Refusal()
	}
	replies := make([]*script.Reply, len(calls))
	for i, reply := range w.Link.RunApart(context.WithoutCancel(ctx), calls, w.Replicas) {
		replies[i] = reply.Cmd
	}
	return replies, nil
}
