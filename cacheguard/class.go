package cacheguard

import (
	"context"
	"errors"
	"slices"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Class is what an error of this package means to whoever asked, see ClassOf.
type Class string

// What a call of this package came to. docs/guarantees.md has an answer of HTTP and of gRPC for each.
const (
	ClassNone        Class = "none"        // no error
	ClassAbsent      Class = "absent"      // there is no such thing
	ClassUnavailable Class = "unavailable" // nothing was written; try again
	ClassCommitted   Class = "committed"   // it is written; others may read the old value for a while: no error for a client
	ClassCanceled    Class = "canceled"    // a context ended; of a write, nobody knows whether it was made
	ClassFailed      Class = "failed"      // a loader, a write or the caller is at fault
)

// ClassOf says what an error of a call of this package means to whoever asked, the same on each instance. One that
// matches one of absences, such as sql.ErrNoRows, is ClassAbsent, as ErrNotFound is. Of joined errors it says what
// comes last in this order: committed, absent, failed, unavailable, canceled.
func ClassOf(err error, absences ...error) Class {
	switch e := err.(type) { //nolint:errorlint // each error of the tree has its turn
	case nil:
		return ClassNone
	case *calledError:
		return e.class(absences...)
	case *RedisError:
		if e.Op == "invalidate" {
			return ClassCommitted
		}
		return ClassUnavailable
	case *loadTimeout:
		return ClassUnavailable
	case *PanicError:
		return ClassFailed
	case *LoadError:
		return worst(e.matched, func(err error) Class {
			class, _ := err.(travellingClass) //nolint:errorlint // itself
			return Class(class)
		})
	case interface{ Unwrap() []error }:
		return worst(e.Unwrap(), func(err error) Class { return ClassOf(err, absences...) })
	}
	switch {
	case slices.Contains(tryAgain, err):
		return ClassUnavailable
	case slices.Contains(overdue, err):
		return ClassCanceled
	case matches(err, ErrNotFound), slices.ContainsFunc(absences, func(absence error) bool { return matches(err, absence) }):
		return ClassAbsent
	}
	if inner := errors.Unwrap(err); inner != nil {
		return ClassOf(inner, absences...)
	}
	return ClassFailed
}

// tryAgain are errors of calls that wrote nothing, and overdue those of contexts, each itself.
var (
	tryAgain = []error{ErrClosed, ErrNotCached, ErrNotReplicated, errNoSpareSlot, breaker.ErrOpen, lifecycle.ErrNotAcquired, lifecycle.ErrLockClosed}
	overdue  = []error{context.Canceled, context.DeadlineExceeded}
)

// byWeight has last what outweighs the others.
var byWeight = []Class{ClassNone, ClassCommitted, ClassAbsent, ClassFailed, ClassUnavailable, ClassCanceled}

// worst is what weighs most of the errors' classes; ClassFailed, if they have none.
func worst(errs []error, classOf func(error) Class) Class {
	most := 0
	for _, err := range errs {
		most = max(most, slices.Index(byWeight, classOf(err)))
	}
	if most == 0 {
		return ClassFailed
	}
	return byWeight[most]
}

// matches reports whether the error says that there is no such thing, and is no panic that has something of the kind.
func matches(err, absence error) bool {
	return errors.Is(err, absence) && !errors.As(err, new(*PanicError))
}

// travellingClass is the class of a loader's error for other instances, who get no more of it than its text.
type travellingClass Class

func (c travellingClass) Error() string { return string(c) }

// Names reports whether the error travels with this class.
func (c travellingClass) Names(err error) bool { return ClassOf(err) == Class(c) }

// Written reports whether something may have been written, by the error of an Update, UpdateMany, Put or Intent. If
// not, write was not called; of Intend and Also, nothing was announced, so nothing should be written. It is true for
// nil, and what it does not know.
func Written(err error) bool {
	var called *calledError
	var redis *RedisError
	switch {
	case errors.As(err, &called):
		return called.written
	case errors.As(err, &redis) && redis.Op != "invalidate",
		errors.As(err, new(*LoadError)), errors.As(err, new(*KeyError)), errors.As(err, new(*PanicError)), errors.As(err, new(*loadTimeout)),
		errors.Is(err, ErrNotFound), errors.Is(err, ErrNotCached), errors.Is(err, ErrReentrant), errors.Is(err, ErrClosed):
		return false
	}
	return true
}

// calledError is an error that says whether write was called, and returned nil. The outermost counts: the write of one
// Update may return the error of another.
type calledError struct {
	error
	written, committed bool
}

func (e *calledError) Unwrap() error { return e.error }

// class is what the error means: what was perhaps written is not to be tried again, unless Redis does not know of it.
func (e *calledError) class(absences ...error) Class {
	var redis *RedisError
	switch class := ClassOf(e.error, absences...); {
	case e.committed:
		return ClassCommitted
	case class == ClassUnavailable && e.written && !(errors.As(e.error, &redis) && (redis.Op == "update" || redis.Op == "intend")):
		return ClassFailed
	default:
		return class
	}
}

// saying marks an error, if it does not say itself what is to be known of write.
func saying(err error, called, committed bool) error {
	e := &calledError{err, called, committed}
	if err == nil || Written(err) == called && ClassOf(err) == e.class() {
		return err
	}
	return e
}

// notCalled marks an error of a call that has not called write.
func notCalled(err error) error { return saying(err, false, false) }
