// Package off says why a call may not go to the cache: it is turned off for the process, the fleet, the key or the call, or an invalidation of the key
// has not reached Redis yet.
package off

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/inprocess"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// ErrBypassed is why nothing is read while somebody wants that.
var (
	ErrBypassed = errors.New("the cache is bypassed")

	errUnserved = fmt.Errorf("%w for this key (Config.Serve)", ErrBypassed)
	errPending  = errors.New("an invalidation is still to be sent")
	errExcused  = fmt.Errorf("%w for this call (WithoutCache)", ErrBypassed)
)

// Reason is why a call may have to go past the cache.
type Reason uint32

// The reasons. For keys, calls, what is pending and intents they say that it is worth asking.
const (
	Disabled Reason = 1 << iota // in this process, for good
	here                        // in this process
	fleet                       // in all
	LookDue                     // it is time to see whether the fleet does
	keys                        // some keys are not served
	calls                       // some calls are excused
	Pending                     // invalidations of some keys are
	Intents                     // some stand
)

// Config is what a Switch needs of its Guard.
type Config struct {
	Redis            script.Processor
	Prefix, Instance string
	Timeout          time.Duration // of an operation on Redis
	Life             *lifecycle.Life
	Pending          interface{ IsPending(key string) bool } // an invalidation

	// Changed says whether the cache is bypassed, and until when; zero: until it is turned on again. It is called under the Switch's mutex.
	Changed func(on bool, until time.Time)
}

// Switch says whether a Guard's cache is off. Use Open.
type Switch struct {
	Config

	reasons atomic.Uint32 // in one word, so that a hit checks only one
	serve   atomic.Pointer[func(key string) bool]

	mu     sync.Mutex
	closed bool
	until  time.Time   // in the fleet; zero: it is not
	end    *time.Timer // fires then
	look   *time.Timer // fires when it is time to look again
	looked time.Time   // when Redis was last asked about the fleet
}

// Open opens the zero Switch, which is on, as far as is known.
func (s *Switch) Open(cfg Config, disabled bool) {
	s.Config = cfg
	s.Put(Disabled, disabled)
	s.Put(LookDue, !disabled)
}

// None reports whether nothing speaks against any call.
func (s *Switch) None() bool { return s.reasons.Load() == 0 }

// Has reports whether one of the reasons is there.
func (s *Switch) Has(r Reason) bool { return Reason(s.reasons.Load())&r != 0 }

// Put sets or clears a reason.
func (s *Switch) Put(r Reason, is bool) {
	if is {
		s.reasons.Or(uint32(r))
	} else {
		s.reasons.And(^uint32(r))
	}
}

// Why is why the key must not be read for the call; nil if it may be. It asks about the process, the fleet, the key, the call, and what is pending.
func (s *Switch) Why(ctx context.Context, key string) error {
	if s.Has(LookDue) {
		s.lookLater()
	}
	switch {
	case s.Has(Disabled):
		return inprocess.ErrDisabled
	case s.Bypassed():
		return ErrBypassed
	case s.Unserved(key):
		return errUnserved
	case s.Has(calls) && ctx.Value(excuse{s}) != nil:
		return errExcused
	case s.Config.Pending.IsPending(key):
		return errPending
	}
	return nil
}

// Bypassed reports whether the cache is off for all keys.
func (s *Switch) Bypassed() bool { return s.Has(here | fleet) }

// Unserved reports whether it is off for the key.
func (s *Switch) Unserved(key string) bool { return s.Has(keys) && !(*s.serve.Load())(key) }

// Serve says for which keys the cache is on; nil: all.
func (s *Switch) Serve(serve func(key string) bool) {
	if serve != nil {
		s.serve.Store(&serve)
	}
	s.Put(keys, serve != nil)
}

type excuse struct{ from *Switch }

// Excuse returns a context for calls for which the cache is off.
func (s *Switch) Excuse(ctx context.Context) context.Context {
	s.Put(calls, true)
	return context.WithValue(ctx, excuse{s}, true)
}
