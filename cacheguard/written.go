package cacheguard

import "errors"

// Written reports whether write was called, by the error of an Update, UpdateMany or Put: if it was not, nothing has changed, and the call can
// be repeated. Of an error of Intend it says that nothing was announced, so that nothing should be written. After Done, and for any other error, it
// is true: something may have been written. It is true for nil.
func Written(err error) bool {
	if called, is := errors.AsType[*calledError](err); is {
		return called.written
	}
	return !errors.Is(err, ErrClosed)
}

// calledError is an error that says whether write was called. The outermost counts: the write of one Update may return the error of another.
type calledError struct {
	error
	written bool
}

func (e *calledError) Unwrap() error { return e.error }

// notCalled marks an error of a call that has not called write.
func notCalled(err error) error {
	if err == ErrClosed { //nolint:errorlint // itself: it says so, and callers may compare it
		return err
	}
	return &calledError{err, false}
}

// wasCalled marks an error of a call that has called write, if that is needed.
func wasCalled(err error) error {
	if Written(err) {
		return err
	}
	return &calledError{err, true}
}
