// Package wallclock sets the wall clock of a process, of any program, while it runs. The real time that it sees moves,
// and its monotonic clock does not, as when somebody sets the clock of its machine. Package wallclock writes into the
// process, over the functions of the kernel's vDSO, where C, Go and Java all ask for the time. Timers of the kernel
// that end at a point of the real time are not moved.
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

// Set sets the clock of processes to so much after the machine's, or before it, in whole seconds. stop stops the
// processes, and goOn lets them go on. Children that they fork later have their clock.
func Set(ahead time.Duration, stop func() (pids []int), goOn func()) error {
	err := errBusy
	for range attempts {
		if err = setAll(stop(), ahead); !errors.Is(err, errBusy) {
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

func setAll(pids []int, ahead time.Duration) error {
	for _, pid := range pids {
		if err := set(pid, ahead); err != nil {
			return err
		}
	}
	return nil
}
