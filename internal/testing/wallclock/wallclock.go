// Package wallclock sets the wall clock of a process, of any program, while it runs. The real time that it sees moves,
// and its monotonic clock does not, as when somebody sets the clock of its machine. Package wallclock writes into the
// process, over the functions of the kernel's vDSO, where C, Go and Java all ask for the time. Timers of the kernel
// that end at a point of the real time are not moved. It suspends a process, too: then the monotonic clock lags behind.
//
// It works on Linux, on amd64, and elsewhere returns errors.ErrUnsupported.
package wallclock

import (
	"errors"
	"fmt"
	"time"
)

// errBusy says that a thread was asking for the time just then, or was not stopped yet.
var errBusy = errors.New("a thread is asking for the time")

// attempts is how often a process is stopped before it counts as one that always asks for the time.
const attempts = 1000

// Offset is by how much a process's clocks differ from the machine's, in whole seconds.
type Offset struct {
	Ahead time.Duration // of the real time
	Slept time.Duration // the monotonic clock lags behind by that: the time that it was suspended
}

// Set sets the clocks of processes. stop stops the processes, and goOn lets them go on. Children that they fork later have
// their clocks. Slept may not grow: time would go back.
func Set(o Offset, stop func() (pids []int), goOn func()) error {
	return whileStopped(stop, goOn, func(pids []int) error { return setAll(pids, o) })
}

// Suspend stops processes for d, as if their machine was suspended: the real time goes on, and their monotonic clock
// stands still. It returns what Set and Suspend need from then on.
func Suspend(o Offset, d time.Duration, stop func() (pids []int), goOn func()) (Offset, error) {
	after := Offset{o.Ahead, o.Slept + d}
	return after, whileStopped(stop, goOn, func(pids []int) error {
		if err := setAll(pids, o); err != nil { // it may be busy, and then goes on
			return err
		}
		time.Sleep(d)
		return setAll(pids, after)
	})
}

func whileStopped(stop func() (pids []int), goOn func(), do func(pids []int) error) error {
	err := errBusy
	for range attempts {
		if err = do(stop()); !errors.Is(err, errBusy) {
			goOn()
			break
		}
		goOn()
	}
	if err != nil {
		return fmt.Errorf("wallclock: %w", err)
	}
	return nil
}

func setAll(pids []int, o Offset) error {
	for _, pid := range pids {
		if err := set(pid, o); err != nil {
			return err
		}
	}
	return nil
}
