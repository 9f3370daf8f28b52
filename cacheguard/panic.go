package cacheguard

import (
	"context"
	"fmt"
	"runtime/debug"
)

// protect calls a loader and then always finish, with the loader's error, or a *PanicError when it panicked or ended
// its goroutine.
func (l *loaders) protect(ctx context.Context, key string, load func() error, finish func(error)) {
	returned := false
	var err error
	defer func() {
		if panicked := recover(); !returned {
			if panicked == nil {
				panicked = errGoexit
			}
			stack := debug.Stack()
			err = &PanicError{Key: key, Value: panicked, Stack: stack}
			if !answers(err) {
				err = &PanicError{Key: key, Value: said(panicked), Stack: stack}
			}
			l.tell(ctx, EventPanicked, key, nil, "panic", said(panicked), "stack", string(stack))
		}
		finish(err)
	}()
	if err = load(); err != nil {
		_ = err.Error() // where a panic of the loader's own error type is one of the loader
		err = givenUp(ctx, err)
	}
	returned = true
}

// said is the text of what a loader panicked with, which may panic, too.
func said(panicked any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", panicked)
		}
	}()
	return fmt.Sprint(panicked)
}

// answers reports whether the error can be asked: one that wraps a typed nil may panic.
func answers(err error) bool {
	defer func() { _ = recover() }()
	_ = failed(err)
	return true
}
