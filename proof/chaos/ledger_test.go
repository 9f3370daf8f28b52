package chaos

import (
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	revocable    = 4096 // keys
	mortal       = 0    // is the row that a process invalidates when it dies
	invalidators = 3
	readers      = 4
	theDead      = invalidators // what they have done is entered by the parent
	past         = 16           // invalidations of a key that one process remembers
)

// ledger is memory of all processes: the database, and which of its versions have been invalidated, and when. It costs nothing to look
// at, so that there can be a million invalidations.
type ledger struct {
	stop     atomic.Bool
	rows     [revocable]atomic.Int64 // their versions
	returned [invalidators + 1][revocable]returns
	dies     [invalidators]atomic.Bool  // in its next invalidation
	dying    [invalidators]atomic.Int64 // the version that it was about to invalidate then

	split struct{ since, until atomic.Int64 } // the last time that two servers took themselves for the primary

	gets, local, wrong [readers]atomic.Int64
	excused            [readers]atomic.Int64 // old, as read from the wrong one of two primaries
	oldest             [readers]atomic.Int64 // of what a tier has answered
	invalidated        [invalidators]atomic.Int64
	failed             [invalidators]atomic.Int64
}

// returns are the last invalidations of a key by one process.
type returns struct {
	n   atomic.Int64
	all [past]struct{ at, version atomic.Int64 }
}

func openLedger(t *testing.T, path string) *ledger {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int(unsafe.Sizeof(ledger{}))
	if err = f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	return (*ledger)(unsafe.Pointer(unsafe.SliceData(memory)))
}

// mono is the machine's monotonic clock, which all processes have in common. It asks the kernel, as some have other clocks.
func mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// add notes that the invalidation of a version has returned. Only the process that has the place calls it.
func (r *returns) add(version int64) {
	n := r.n.Load()
	e := &r.all[n%past]
	e.at.Store(math.MaxInt64) // nobody reads what is half written
	e.version.Store(version)
	e.at.Store(mono())
	r.n.Store(n + 1)
}

// newest is the newest version of a row whose invalidation had returned by then.
func (l *ledger) newest(row int, by int64) (version int64) {
	for i := range l.returned {
		l.returned[i][row].back(func(at, v int64) bool {
			if at <= by {
				version = max(version, v)
			}
			return at > by
		})
	}
	return version
}

// age is how long before a moment the first invalidation had returned of which an answer knows nothing.
func (l *ledger) age(row int, answer, from int64) (age time.Duration) {
	for i := range l.returned {
		l.returned[i][row].back(func(at, v int64) bool {
			if v > answer && at <= from {
				age = max(age, time.Duration(from-at))
			}
			return v > answer
		})
	}
	return age
}

// back goes back through what has returned, as long as more says so.
func (r *returns) back(more func(at, version int64) bool) {
	n := r.n.Load()
	for i := n - 1; i >= 0 && i > n-past+4; i-- { // the oldest may be overwritten
		e := &r.all[i%past]
		at, version := e.at.Load(), e.version.Load()
		if at != e.at.Load() || !more(at, version) {
			return
		}
	}
}

func sum(all []atomic.Int64) (n int64) {
	for i := range all {
		n += all[i].Load()
	}
	return n
}

// judge compares an answer with what had to be known to it: from a tier, what had returned so long before.
func (l *ledger) judge(place, row int, isLocal bool, lag time.Duration, from, answer int64) (found string) {
	least := l.newest(row, from)
	l.gets[place].Add(1)
	if isLocal {
		l.local[place].Add(1)
		least = l.newest(row, from-int64(lag))
	}
	age := l.age(row, answer, from)
	if answer < least && l.isExcused(isLocal, lag, from) {
		l.excused[place].Add(1)
		return ""
	}
	if isLocal && int64(age) > l.oldest[place].Load() {
		l.oldest[place].Store(int64(age))
	}
	if answer >= least {
		return ""
	}
	l.wrong[place].Add(1)
	return age.String()
}

// isExcused reports whether an answer may be from a primary that is none any more, or from a tier that was filled there.
func (l *ledger) isExcused(isLocal bool, lag time.Duration, from int64) bool {
	until := l.split.until.Load()
	if isLocal {
		until += int64(lag)
	}
	return from >= l.split.since.Load() && from <= until
}
