// Package yield gives work that is about to arrive a chance to do so before a batch is made.
package yield

import (
	"runtime"
	"time"
)

const (
	maxYields = 16
	maxTime   = 50 * time.Microsecond // a yield that takes longer is the last, as on a machine that is busy
)

// WhileGrowing yields to the scheduler until count, which says how much has arrived, stays the same. Goroutines that
// were just woken, and are about to bring more, get their turn. Without any it costs less than a microsecond.
func WhileGrowing(count func() uint64) {
	start := time.Now()
	seen := count()
	for range maxYields {
		runtime.Gosched()
		now := count()
		if now == seen || time.Since(start) > maxTime {
			return
		}
		seen = now
	}
}

// Reprieves are how many parts of its time-out, on top of it, an operation may get when Starved says so.
const Reprieves = 4

// Starved yields, and reports whether that took so long that goroutines must be waiting for the processor: then what
// seems to be late may only not have had its turn.
func Starved() bool {
	const long = 2 * time.Millisecond
	start := time.Now()
	runtime.Gosched()
	return time.Since(start) > long
}
