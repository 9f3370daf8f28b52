package database

import (
	"context"
	"sync"
)

// turns lets one call of the process at a time ask the database for each name, in the order in which they came.
type turns struct {
	mu     sync.Mutex
	byName map[string][]chan struct{} // who waits; there is an entry while somebody has the turn
}

// take waits for the turn of the name, or returns false: when ctx ends, or at once if it must not wait.
func (t *turns) take(ctx context.Context, name string, wait bool) bool {
	t.mu.Lock()
	waiting, busy := t.byName[name]
	if !busy {
		if t.byName == nil {
			t.byName = make(map[string][]chan struct{})
		}
		t.byName[name] = nil
		t.mu.Unlock()
		return true
	}
	if !wait {
		t.mu.Unlock()
		return false
	}
	mine := make(chan struct{}) // closed when the turn is given
	t.byName[name] = append(waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
		if !t.leave(name, mine) {
			t.give(name) // it came just then
		}
		return false
	}
}

// leave takes a call out of the queue, and reports whether it was there.
func (t *turns) leave(name string, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.byName[name]
	for i, other := range waiting {
		if other == mine {
			t.byName[name] = append(waiting[:i:i], waiting[i+1:]...)
			return true
		}
	}
	return false
}

// give ends a turn, and gives it to the next.
func (t *turns) give(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.byName[name]
	if len(waiting) == 0 {
		delete(t.byName, name)
		return
	}
	t.byName[name] = waiting[1:]
	close(waiting[0])
}
