package feedtest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Fleet is the processes that read the log or stand by.
type Fleet struct {
	// Locked says whether the database lets nobody write; nil: it always does. A process may be paused while it has the lock of a file.
	Locked func() bool

	shop  *Shop
	start func() *redistest.Process

	mu      sync.Mutex
	members []*member
}

type member struct {
	*redistest.Process

	reads, paused, dead bool // under the Fleet's mu
}

// StartFleet starts so many processes.
func StartFleet(s *Shop, n int, start func() *redistest.Process) *Fleet {
	s.Helper()
	f := &Fleet{shop: s, start: start}
	for range n {
		f.add()
	}
	return f
}

func (f *Fleet) add() {
	m := &member{Process: f.start()}
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	go f.listen(m) // owner: the test; it ends with the process, which the test ends
}

// listen notes what the process logs.
func (f *Fleet) listen(m *member) {
	for {
		line, err := m.ReadLine(context.Background())
		if err != nil {
			return
		}
		f.mu.Lock()
		switch {
		case strings.Contains(line, "no longer reads the log"):
			m.reads = false
		case strings.Contains(line, "reads the log"):
			m.reads = true
		}
		f.mu.Unlock()
	}
}

// AwaitReader waits until one reads.
func (f *Fleet) AwaitReader() { f.reader() }

// reader waits for a process that reads, and is awake.
func (f *Fleet) reader() (found *member) {
	f.shop.Helper()
	f.shop.Await("a process reads the log", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range f.members {
			if m.reads && !m.paused && !m.dead {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// Kill kills the process that reads, and starts another.
func (f *Fleet) Kill() {
	f.shop.Helper()
	m := f.reader()
	m.Kill()
	f.note(func() { m.dead = true })
	f.add()
}

// Freeze pauses the process that reads until another one does.
func (f *Fleet) Freeze() {
	f.shop.Helper()
	m := f.reader()
	m.Pause()
	for f.Locked != nil && f.Locked() { // nobody could take over: at another moment, then
		m.Resume()
		m.Pause()
	}
	f.note(func() { m.paused = true })
	f.reader()
	m.Resume()
	f.note(func() { m.paused = false })
}

func (f *Fleet) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// TakesOver expects that a feed takes over from the only process of the Fleet, which is disturbed then.
func (f *Fleet) TakesOver(feed Feed, exec func(sql string), disturb func(*redistest.Process)) {
	s := f.shop
	s.Helper()
	reader := f.reader()
	exec("INSERT INTO products VALUES (1, 'a', 'one')")
	s.CatchUp(feed)
	s.Reads(1, "one")
	expect.Equal(s, "two read", feed.Stats().Reading, false)
	disturb(reader.Process)
	exec("UPDATE products SET name = 'uno'")
	s.CatchUp(feed)
	s.Reads(1, "uno")
	stats := feed.Stats()
	expect.Equal(s, "it reads", stats.Reading, true)
	expect.Equal(s, "kinds invalidated whole by a takeover", stats.Whole, 0)
}

// RunChild runs a feed, made with a Logger, in a process of a Fleet, until that is killed.
func RunChild[F Feed](t *testing.T, open func(*slog.Logger) (F, error)) {
	f, err := open(slog.New(slog.NewTextHandler(os.Stdout, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(f.Run(context.Background()))
}

// LoadNothing is for caches that the test does not read.
func LoadNothing(context.Context, int64) (string, error) { return "", errNobodyReads }

var errNobodyReads = errors.New("nobody reads")
