//go:build !linux

package alarm

import (
	"os"
	"sync"
	"time"
)

// Alarm is for one goroutine at a time; Close may be called by another one.
type Alarm struct {
	closed chan struct{}
	close  func()
}

// New returns an alarm that its owner closes.
func New() (*Alarm, error) {
	closed := make(chan struct{})
	return &Alarm{closed: closed, close: sync.OnceFunc(func() { close(closed) })}, nil
}

// Close ends a Sleep that is under way.
func (a *Alarm) Close() error {
	a.close()
	return nil
}

func (a *Alarm) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-a.closed:
		return os.ErrClosed
	}
}
