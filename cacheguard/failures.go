package cacheguard

import (
	"sync"
	"time"

	"github.com/cacheguard/go/internal/protocol"
)

// failures remembers the errors of this Guard's own loads for as long as Redis may remember their text, so that
// callers here get the error itself.
type failures struct {
	mu      sync.Mutex
	errs    map[string]failure // by the load's token
	sweepAt int                // how many there may be before the expired ones are dropped
}

type failure struct {
	err     error
	expires time.Time
}

func (f *failures) add(token string, err error, now time.Time) {
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

// find returns the error of the load, nil if it was not one of ours.
func (f *failures) find(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errs[token].err
}

// textOf is what other instances get of an error.
func (c *Config) textOf(err error) (text string) {
	if c.RedactError == nil {
		return err.Error()
	}
	defer func() {
		if recover() != nil {
			text = "load failed" // and RedactError, which must not take down those who share the load
		}
	}()
	return c.RedactError(err)
}
