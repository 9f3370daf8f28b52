package alarm

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Alarm is for one goroutine at a time; Close may be called by another one.
type Alarm struct {
	timer *os.File // a timerfd, whose expiry wakes the poller as a packet would
}

// New returns an alarm that its owner closes.
func New() (*Alarm, error) {
	const monotonic = 1 // CLOCK_MONOTONIC
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	return &Alarm{timer: os.NewFile(fd, "timerfd")}, nil
}

// Close ends a Sleep that is under way.
func (a *Alarm) Close() error { return a.timer.Close() }

func (a *Alarm) sleep(d time.Duration) error {
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { // which cannot be closed meanwhile
		setting := struct{ interval, first syscall.Timespec }{first: syscall.NsecToTimespec(int64(d))}
		_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
	})
	if err != nil {
		return os.ErrClosed
	}
	if errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	var expiries [8]byte
	_, err = a.timer.Read(expiries[:])
	return err
}
