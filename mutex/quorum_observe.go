package mutex

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cacheguard/go/internal/watch/observe"
)

// observed is for package admin.
func (q *Quorum) observed() observe.Locker {
	seen := q.core().Observed("quorum", exclusive)
	if q != nil {
		seen.Servers, seen.Inspect = len(q.servers), q.inspect
	}
	return seen
}

// inspect asks every server. It fails when no majority answers.
func (q *Quorum) inspect(ctx context.Context, name string) (observe.Lock, error) {
	if err := q.core().Begin(name); err != nil {
		return observe.Lock{}, err
	}
	defer q.base.Life.Done()
	infos, errs := make([]Info, len(q.servers)), make([]error, len(q.servers))
	var asked sync.WaitGroup
	for i, server := range q.servers {
		asked.Go(func() { // owner: inspect; stop: ctx, RedisTimeout; joined below
			reply, err := server.Ask(ctx, inspecting(lockKey(q.base.Config.Prefix, name)), nil)
			if err == nil {
				err = infos[i].read(reply.Cmd)
			}
			errs[i] = err
		})
	}
	asked.Wait()
	var answers []Info
	for i, err := range errs {
		if err == nil {
			answers = append(answers, infos[i])
		}
	}
	if len(answers) < q.majority {
		return observe.Lock{}, q.base.Failed("inspect", name, errors.Join(errs...))
	}
	return q.tally(answers), nil
}

// tally is the lock as a majority of the servers has it: for one, a server that granted it late may have given it a greater fence than
// that of the lease. A holder that fewer than a majority name does not have the lock: its try goes on, or failed.
func (q *Quorum) tally(answers []Info) observe.Lock {
	slices.SortFunc(answers, func(a, b Info) int { return cmp.Compare(b.Fence, a.Fence) })
	lock := observe.Lock{Answered: len(answers), Fence: answers[q.majority-1].Fence}
	slices.SortFunc(answers, func(a, b Info) int { return cmp.Compare(b.Left, a.Left) })
	at := make(map[string]int) // in lock.By
	for _, i := range answers {
		if i.Token == "" {
			continue
		}
		if _, named := at[i.Token]; !named {
			at[i.Token] = len(lock.By)
			lock.By = append(lock.By, observe.Lock{Token: i.Token, Instance: i.Instance})
		}
		h := &lock.By[at[i.Token]]
		h.Servers++
		if h.Servers <= q.majority {
			h.Left = i.Left // a majority has it for as long
		}
		if h.Servers == q.majority {
			lock.Token, lock.Instance, lock.Holders, lock.Left = h.Token, h.Instance, 1, h.Left
		}
	}
	slices.SortStableFunc(lock.By, func(a, b observe.Lock) int { return cmp.Compare(b.Servers, a.Servers) })
	return lock
}
