package main

import (
	"fmt"
	"slices"
	"time"
)

// aged is after how long the data of a page are newer than a question: a page makes them anew after half a second.
const aged = 600 * time.Millisecond

// tokens asks Redis who has a lock of that kind; of readers it does not know.
func (l lockers) tokens(e *env, kind, name string) (all []string, err error) {
	switch kind {
	case "mutex":
		m, err := l.mutex.Inspect(e.ctx, name)
		return []string{m.Token}, err
	case "rwlock":
		rw, err := l.rwlock.Inspect(e.ctx, name)
		return []string{rw.Token}, err
	}
	sem, err := l.semaphore.Inspect(e.ctx, name)
	for _, h := range sem.Holders {
		all = append(all, h.Token)
	}
	return all, err
}

// heldOn are the instances that have the lock, as their pages say, by their tokens. Readers have none that Redis tells.
func (e *env) heldOn(pages []string, kind, name string) map[string]string {
	by := make(map[string]string)
	for _, p := range lookAtAll(e.ctx, pages) {
		for _, l := range p.Lockers {
			if l.Kind != kind || l.Prefix != e.all.LockPrefix {
				continue
			}
			for _, lock := range l.Locks {
				if lock.Name == name && lock.Mode != "read" && lock.Token != "" {
					by[lock.Token] = l.Instance
				}
			}
		}
	}
	return by
}

// heldElsewhere says that instances have a lock of which this Redis knows nothing; empty: it knows one of them, or nobody has it for long. A token that a
// page shows before and after the question was held when Redis was asked.
func (e *env) heldElsewhere(pages []string, l lockers, kind, name string) string {
	before := e.heldOn(pages, kind, name)
	if len(before) == 0 {
		return ""
	}
	here, err := l.tokens(e, kind, name)
	if err != nil || slices.ContainsFunc(here, func(token string) bool { return before[token] != "" }) {
		return ""
	}
	select {
	case <-time.After(aged):
	case <-e.ctx.Done():
		return ""
	}
	for token, instance := range e.heldOn(pages, kind, name) {
		if before[token] != "" {
			return fmt.Sprintf("%s holds the %s %q of %q in another Redis than REDIS_URL names, which is %s and does not know that", instance, kind, name, e.all.LockPrefix, e.where())
		}
	}
	return ""
}
