package sim

import (
	"crypto/sha256"
	"fmt"
	"hash"
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

// told is the journal so far.
func (t *truth) told() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.journal.String()
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

// record hashes all messages of a run: in which order they were sent, when each arrives, and what it says, keys and tokens included. Runs of one
// record went the same way.
type record struct {
	began time.Time

	mu       sync.Mutex
	messages int
	hash     hash.Hash
}

func newRecord() record { return record{began: time.Now(), hash: sha256.New()} }

func (r *record) add(m message, isReply bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages++
	_, _ = fmt.Fprintln(r.hash, time.Since(r.began), m.at.Sub(r.began), m.lost, isReply, len(m.bytes)) // a Hash returns no error
	_, _ = r.hash.Write(m.bytes)                                                                       // the same
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d messages, hash %x\n", r.messages, r.hash.Sum(nil)[:8])
}
