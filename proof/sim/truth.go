package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// truth is the database, and what everybody may read.
type truth struct {
	mu      sync.Mutex
	began   time.Time
	rows    []int64
	changes [][]change // of each row
	safe    []int64    // the version of each row that was committed while an intent certainly stood on it
	wrong   []string
	journal strings.Builder
}

// change is one whose call has returned.
type change struct {
	version  int64
	by       *instance
	returned time.Time
	failed   bool // the call returned an error
}

func newTruth(rows int) *truth {
	return &truth{began: time.Now(), rows: make([]int64, rows), changes: make([][]change, rows), safe: make([]int64, rows)}
}

func (t *truth) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(format, args...)
}

func (t *truth) noteLocked(format string, args ...any) {
	fmt.Fprintf(&t.journal, "%10.3fms  %s\n", float64(time.Since(t.began).Microseconds())/1000, fmt.Sprintf(format, args...))
}

func (t *truth) complain(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	t.noteLocked("WRONG: "+format, args...)
}

func (t *truth) read(row int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[row]
}

func (t *truth) write(rows ...int) (versions []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range rows {
		t.rows[row]++
		versions = append(versions, t.rows[row])
	}
	return versions
}

// changed notes that a call which had written these versions has returned.
func (t *truth) changed(by *instance, rows []int, versions []int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, version := range versions {
		t.changes[rows[i]] = append(t.changes[rows[i]], change{version, by, time.Now(), err != nil})
	}
}

// floor is the oldest version that a read which begins now may return.
func (t *truth) floor(reader *instance, row int, lag time.Duration) (least int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.changes[row] {
		if c.by == reader || !c.failed && time.Since(c.returned) >= lag {
			least = max(least, c.version)
		}
	}
	return least
}

// settled reports whether the last version of a row was invalidated, or will be by an instance that lives.
func (t *truth) settled(row int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.changes[row] {
		if c.version == t.rows[row] && (!c.failed || !c.by.dead) {
			return true
		}
	}
	return t.rows[row] == t.safe[row] // an intent survives its process
}
