package scenario

import (
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// times collects durations. It is safe for concurrent use.
type times struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram // nanoseconds
}

func newTimes() *times {
	const digits = 3
	return &times{h: hdrhistogram.New(1, int64(10*time.Minute), digits)}
}

// add keeps a duration. A wait for something that had happened already took no time.
func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.h.RecordValue(int64(max(d, 0))) // longer than any run lasts
}

// at is a percentile, in milliseconds.
func (t *times) at(percent float64) float64 {
	return Millis(time.Duration(t.h.ValueAtPercentile(percent)))
}

func (t *times) longest() float64 { return Millis(time.Duration(t.h.Max())) }

// Millis are milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Micros are microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ProcessTime is how long this process has computed.
func ProcessTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
