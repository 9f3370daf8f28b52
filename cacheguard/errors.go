package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/cache/failure"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

var (
	// ErrNotFound says that the source has no such thing. A loader returns it, or an error that wraps it, and a Guard
	// remembers it for NegativeTTL.
	ErrNotFound = errors.New("cacheguard: not found")

	// ErrNotCached is returned by Peek, and by a Fetch without Load, when the cache has no value that may be served.
	ErrNotCached = errors.New("cacheguard: not cached")

	// ErrClosed is returned by calls on a Guard that is closed, also while they wait.
	ErrClosed = errors.New("cacheguard: guard is closed")

	// ErrReentrant is returned to a loader that asks, directly or through other loaders, for its own key, and to an
	// Update within the write of another one of the key, by the context that they were given. Loaders that ask for each
	// other's keys wait until LoadTimeout.
	ErrReentrant = errors.New("cacheguard: call would wait for itself")
)

var errNilGuard = errors.New("cacheguard: guard is nil (did New return an error?)")

var (
	errEmptyKey = errors.New("cacheguard: key is empty")
	errNoKeys   = errors.New("cacheguard: no keys")
)

// errRejected is why a thing is not stored that Warm has loaded.
var errRejected = errors.New("loaded, but not stored: the key, or a tag, was invalidated meanwhile, or another load stored a value")

// errNoSpareSlot is why a load did not run: nobody has to wait for it and others do, or Config.Limiter is closed.
var errNoSpareSlot = errors.New("no load slot to spare, or Config.Limiter is closed")

var errGoexit = errors.New("loader called runtime.Goexit")

// RedisError says that Redis could not be used: Invalidate, Update and Intend return it, and Get with FailClosed.
type RedisError struct {
	Op  string // get, acquire, invalidate, inspect, bypass; update or intend: nothing was written; in events also fill and fail
	Key string // the caller's key
	Err error  // the client's error, or context.DeadlineExceeded after RedisTimeout
}

func (e *RedisError) Error() string {
	return fmt.Sprintf("cacheguard: redis %s of %q: %v", e.Op, errs.Short(e.Key), e.Err)
}

func (e *RedisError) Unwrap() error { return e.Err }

// PanicError is returned to every caller that waited for a load whose loader panicked, or called runtime.Goexit.
type PanicError struct {
	Key   string
	Value any    // what the loader panicked with
	Stack []byte // where, as formatted by runtime/debug.Stack
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("cacheguard: loader of %q panicked: %v", errs.Short(e.Key), e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// LoadError is returned to callers that waited for a load of another Guard, or asked shortly after it failed. Message
// is the loader's text, for clients: Error adds the key. It has the loader's Class, and matches what its error matched
// of this package, package mutex, context.DeadlineExceeded, CacheConfig.Errors and ErrorCodec.
type LoadError struct {
	Key     string
	Message string // the text of the loader's error, at most 1 KiB of it

	matched []error // of ownCauses, CacheConfig.Errors and ErrorCodec
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("cacheguard: load of %q by another guard failed: %s", errs.Short(e.Key), e.Message)
}

// Unwrap returns what it matches.
func (e *LoadError) Unwrap() []error { return e.matched }

// ErrorCodec carries errors of a loader to other instances. Its methods are called concurrently.
type ErrorCodec interface {
	// EncodeError returns from what DecodeError makes an equal error, in at most 512 bytes; of more, and of nil, only
	// the text travels. Config.RedactError is not asked.
	EncodeError(err error) []byte

	// DecodeError returns the error, or nil, as for one of another version of the program.
	DecodeError(data []byte) error
}

// KeyError is the error of one key of a GetMany.
type KeyError struct {
	Key string
	Err error
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("cacheguard: key %q: %v", errs.Short(e.Key), e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// closedOr translates the cause of a cancelled flight.
func closedOr(cause error) error {
	if errors.Is(cause, flight.ErrClosed) {
		return ErrClosed
	}
	return cause
}

// loadError is the error of another Guard's load.
func (p *policy) loadError(key, travelled string) *LoadError {
	text, matched := p.names.Decode(travelled)
	return &LoadError{Key: key, Message: text, matched: matched}
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

// ownCauses are failures that are the same on each instance, by the names under which they travel. Those of LoadTimeout
// match the first.
var ownCauses = map[string]error{
	"deadline": context.DeadlineExceeded, "closed": ErrClosed, "reentrant": ErrReentrant, "uncached": ErrNotCached, "unreplicated": ErrNotReplicated,
	"class unavailable": travellingClass(ClassUnavailable), "class committed": travellingClass(ClassCommitted), "class canceled": travellingClass(ClassCanceled),
	"unacquired": lifecycle.ErrNotAcquired, "lost": lifecycle.ErrLeaseLost, "revoked": lifecycle.ErrRevoked, "lock closed": lifecycle.ErrLockClosed,
}

var ownNames = failure.NewNames(ownCauses, nil, nil)

// absent is the loader's error, or ErrNotFound if that says that there is no such thing.
func (p *policy) absent(err error) error {
	if err != nil && (errors.Is(err, p.notFound) || p.isNotFound != nil && p.isNotFound(err)) {
		return ErrNotFound
	}
	return err
}

// absence is the error for the caller: for a thing that does not exist, what the program has for that.
func (p *policy) absence(key string, err error) error {
	if err == nil || p.notFound == nil || !absentAlone(err) {
		return err
	}
	if each, is := p.notFound.(interface{ Of(key string) error }); is {
		return each.Of(key)
	}
	return p.notFound
}

// absentAlone reports whether the error is plain absence, and not another failure that wraps it, such as a panic.
func absentAlone(err error) bool {
	return matches(err, ErrNotFound)
}

// unanswered is the error of a call that was not answered.
func unanswered(ctx context.Context, key string, err error) error {
	if errors.Is(err, flight.ErrClosed) || errors.Is(err, send.ErrClosed) || errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	if ctx.Err() == nil { // there is no slot: the Limiter is closed
		return &calledError{error: fmt.Errorf("cacheguard: get %q: %w", errs.Short(key), err)}
	}
	return ended(ctx, "get", key)
}

// ended is the error of a read whose context ended: it matches both the context's error and its cause.
func ended(ctx context.Context, op, key string) error {
	return &calledError{error: fmt.Errorf("cacheguard: %s %q: %w", op, errs.Short(key), lifecycle.Ended(ctx))}
}

// failed reports whether a loader's error is a failure: neither absence, nor that nobody waits any more.
func failed(err error) bool {
	return err != nil && !absentAlone(err) && !errors.Is(err, context.Canceled)
}

// givenUp is the error of a load whose context has ended. If nobody waits for it any more, it matches context.Canceled
// for all who are told, whatever the loader made of that: it may return the cause, or what its database said. After
// LoadTimeout, it matches context.DeadlineExceeded.
func givenUp(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil || !failed(err):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case errors.Is(err, context.Cause(ctx)):
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// ErrNotReplicated is matched by the *RedisError of what fewer replicas than Config.Replicas acknowledged in time,
// though the primary did.
var ErrNotReplicated = send.ErrNotReplicated

// loadTimeout is why a load was ended. Few are, so its text is made only when somebody reads it.
type loadTimeout struct {
	key   string
	limit time.Duration
}

func (e *loadTimeout) Error() string {
	return fmt.Sprintf("cacheguard: load of %q took longer than LoadTimeout (%v): %v", errs.Short(e.key), e.limit, context.DeadlineExceeded)
}

func (*loadTimeout) Unwrap() error { return context.DeadlineExceeded }
