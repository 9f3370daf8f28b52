package failure

import (
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// Memory remembers the errors of this Guard's own loads for as long as Redis may remember their text, so that
// callers here get the error itself. The zero Memory is ready.
type Memory struct {
	mu      sync.Mutex
	errs    map[string]failure // by the load's token
	sweepAt int                // how many there may be before the expired ones are dropped
}

type failure struct {
	err     error
	expires time.Time
}

// Add remembers the error of a load.
func (f *Memory) Add(token string, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) >= f.sweepAt {
		for t, old := range f.errs {
			if now.After(old.expires) {
				delete(f.errs, t)
			}
		}
		f.sweepAt = 2*len(f.errs) + 64
	}
	if f.errs == nil {
		f.errs = make(map[string]failure)
	}
	f.errs[token] = failure{err: err, expires: now.Add(protocol.LongestFailureMemory + time.Second)}
}

// Find returns the error of the load, nil if it was not one of ours.
func (f *Memory) Find(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errs[token].err
}
