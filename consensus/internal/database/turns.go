package database

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
)

// turns lets one call of the process at a time ask the database for each name, in the order in which they came.
type turns struct {
	mu     sync.Mutex
	byName map[string]*turn
}

// turn is there while somebody has it. The mutex of turns guards it.
type turn struct {
	waiting []chan struct{} // each closed when it has the turn
	told    chan struct{}   // closed when who has the turn has heard that the lock is taken, perhaps by itself
	until   time.Time       // when the last one gave the turn who had heard that
}

// take waits for the turn of the name. It returns an error when ctx ends. One that must not wait waits no longer than until it is known
// that the lock is taken. The error matches ErrTaken if that was known meanwhile.
func (t *turns) take(ctx context.Context, name string, wait bool) error {
	came, mine := time.Now(), make(chan struct{})
	t.mu.Lock()
	now, busy := t.byName[name]
	if !busy {
		if t.byName == nil {
			t.byName = make(map[string]*turn)
		}
		t.byName[name] = &turn{told: make(chan struct{})}
		t.mu.Unlock()
		return nil
	}
	now.waiting = append(now.waiting, mine)
	told := now.told
	t.mu.Unlock()
	if wait {
		told = nil
	}
	var err error
	select {
	case <-mine:
		return nil
	case <-told:
		err = store.ErrTaken
	case <-ctx.Done():
		err = ctx.Err()
	}
	if t.leave(now, mine, came) && ctx.Err() != nil {
		err = store.Taken(err)
	}
	select {
	case <-mine:
		t.give(name) // it came just then
	default:
	}
	return err
}

// leave takes a call that came then out of the queue, and reports whether it was known meanwhile that the lock is taken.
func (t *turns) leave(now *turn, mine chan struct{}, came time.Time) (taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(now.waiting, mine); i >= 0 {
		now.waiting = slices.Delete(now.waiting, i, i+1)
	}
	return now.isTold() || now.until.After(came)
}

func (t *turn) isTold() bool {
	select {
	case <-t.told:
		return true
	default:
		return false
	}
}

// tell notes, for the call that has the turn, that the lock is taken.
func (t *turns) tell(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.byName[name]; !now.isTold() {
		close(now.told)
	}
}

// give ends a turn, and gives it to the next.
func (t *turns) give(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.byName[name]
	if len(now.waiting) == 0 {
		delete(t.byName, name)
		return
	}
	if now.isTold() {
		now.until, now.told = time.Now(), make(chan struct{})
	}
	next := now.waiting[0]
	now.waiting = now.waiting[1:]
	close(next)
}
