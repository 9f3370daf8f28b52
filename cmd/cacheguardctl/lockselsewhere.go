package main

import (
	"context"
	"net/url"
	"strconv"
)

// lockFleet asks the Lockers of that kind under the LockPrefix on the pages, as fleet does, with a lock that nobody else takes, and that leaves nothing.
func (e *env) lockFleet(pages []string, l lockers, kind string) fleet {
	var all []witness
	for i, p := range e.look(pages) {
		for n, k := range p.Lockers {
			if k.Kind == kind && k.Prefix == e.all.LockPrefix {
				query := url.Values{"view": {"lock"}, "locker": {strconv.Itoa(n)}}
				all = append(all, witness{elsewhere{k.Instance, "another for locks"}, pages[i], query, "name"})
			}
		}
	}
	return e.ask(all, func(name string) (remove func() error, err error) {
		made := &ledger{of: name}
		e.rdb.AddHook(after(made.note))
		var lease interface {
			Unlock(ctx context.Context) error
		}
		switch kind {
		case "rwlock":
			lease, err = l.rwlock.TryLock(e.ctx, name)
		case "semaphore":
			lease, err = l.semaphore.TryLock(e.ctx, name)
		default:
			lease, err = l.mutex.TryLock(e.ctx, name)
		}
		return func() error {
			ctx := context.WithoutCancel(e.ctx)
			err := lease.Unlock(ctx)
			_ = made.remove(ctx, e.rdb) // what a lock leaves, such as its fence, expires where the user may not
			return err
		}, err
	})
}
