package redistest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fatalTB is a testing.TB on which Fatal ends only run, so that a test can look at it.
type fatalTB struct {
	testing.TB
	message string
}

// run calls f and returns when f has returned or failed.
func (f *fatalTB) run(call func()) {
	done := make(chan struct{})
	go func() { // owner: run; stops when call returns or fails; run waits for done
		defer close(done)
		call()
	}()
	<-done
}

func (f *fatalTB) Fatal(args ...any) {
	f.message = fmt.Sprint(args...)
	runtime.Goexit()
}

func (f *fatalTB) failedWith(part string) bool { return strings.Contains(f.message, part) }
