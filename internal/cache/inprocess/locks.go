package inprocess

import (
	"context"
	"sync"
)

// Locks are exclusive locks by key. The zero value is ready to use.
type Locks struct {
	mu   sync.Mutex
	keys map[string]*lock
}

type lock struct {
	held  chan struct{} // of size 1: full while somebody has the lock; waiters queue in their order
	users int           // that have it or wait
}

// Acquire waits for the locks of the keys, which are sorted, until ctx or the Guard ends. Release may be called more than once. Not ok:
// nothing is locked.
func (l *Locks) Acquire(ctx context.Context, ending <-chan struct{}, keys []string) (release func(), ok bool) {
	taken := make([]string, 0, len(keys))
	release = sync.OnceFunc(func() {
		for _, key := range taken {
			l.leave(key, true)
		}
	})
	for _, key := range keys {
		select {
		case l.enter(key).held <- struct{}{}:
			taken = append(taken, key)
		case <-ctx.Done():
			l.leave(key, false)
		case <-ending:
			l.leave(key, false)
		}
		select { // also if it has the lock
		case <-ending:
			release()
			return nil, false
		default:
		}
		if ctx.Err() != nil {
			release()
			return nil, false
		}
	}
	return release, true
}

func (l *Locks) enter(key string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = make(map[string]*lock)
	}
	k := l.keys[key]
	if k == nil {
		k = &lock{held: make(chan struct{}, 1)}
		l.keys[key] = k
	}
	k.users++
	return k
}

func (l *Locks) leave(key string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[key]
	if held {
		<-k.held
	}
	if k.users--; k.users == 0 {
		delete(l.keys, key)
	}
}

// Users is how many have the lock of the key, or wait for it.
func (l *Locks) Users(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[key]; k != nil {
		return k.users
	}
	return 0
}
