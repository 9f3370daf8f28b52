package feedtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	soakKeys    = 60
	soakWriters = 4
	statements  = 15 // of a writer in a round
)

// Soak has writers with all kinds of statements, readers with tiers in memory, and readers of the log that are killed and frozen: in the end, after CatchUp,
// nothing is old.
type Soak struct {
	*Shop

	Dialect Dialect
	Feed    Feed // which does not run, but can say when the others have caught up

	// Exec runs statements on one connection, and ends what transaction is left open. A failed statement, as a key is there already or there is a
	// deadlock, is rolled back.
	Exec func(ctx context.Context, statements []string)

	// Truth is what the database has.
	Truth func(ctx context.Context) (map[int64]string, error)

	// Position is what is confirmed; 0: it is not known. It never goes back, also when a reader wakes up after another has taken over.
	Position func(ctx context.Context) uint64

	Fleet    *Fleet
	Troubles []Trouble
}

// Trouble is something that happens to the readers of the log, or to a server.
type Trouble struct {
	Name string
	Make func()

	Rewinds bool // the database may have forgotten the last position that it was told
}

// Rounds is how many rounds a soak has: few, unless SOAK says how many.
func Rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil {
		return n
	}
	return few
}

// Run soaks for some rounds, each with one trouble.
func (s *Soak) Run(rounds int) {
	s.Helper()
	s.Use(s.Client, func(c *cacheguard.Config) { c.Local = cacheguard.LocalConfig{MaxEntries: 1000} })
	for round := range rounds {
		trouble := s.Troubles[round%len(s.Troubles)]
		began := time.Now()
		s.round(round, trouble)
		if testing.Verbose() {
			s.Logf("round %d, %s: %v", round, trouble.Name, time.Since(began).Round(time.Millisecond))
		}
		if s.Failed() {
			return
		}
	}
}

func (s *Soak) round(round int, trouble Trouble) {
	s.Helper()
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for n := range soakWriters { // owner: this round; stop: they have written; joined below
		writers.Go(func() { s.scribble(rand.New(rand.NewPCG(uint64(round), uint64(n)))) })
		readers.Go(func() { s.readUntil(stop) })
	}
	ended := make(chan struct{})
	if !trouble.Rewinds {
		readers.Go(func() { s.watchUntil(ended) }) // the same
	}
	trouble.Make()
	writers.Wait()
	s.CatchUpInTheEnd(s.Feed)
	close(ended)
	s.nothingIsOld(round, trouble.Name)
	close(stop)
	readers.Wait()
}

func (s *Soak) scribble(random *rand.Rand) {
	for range statements {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		s.Exec(ctx, s.Dialect.random(random))
		cancel()
	}
}

// readUntil reads all the time, but leaves a processor to the databases, which are slow with the race detector.
func (s *Soak) readUntil(stop chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for id := int64(0); ; id = (id + 1) % soakKeys {
		select {
		case <-stop:
			return
		case <-tick.C:
			_, _ = s.Products.Get(context.Background(), id) // what counts is what the test reads afterwards
		}
	}
}

// watchUntil expects that the position never goes back.
func (s *Soak) watchUntil(ended chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var last uint64
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		at := s.Position(context.Background())
		if at != 0 && at < last {
			s.Errorf("the position went back from %d to %d", last, at)
		}
		last = max(last, at)
	}
}

// nothingIsOld reads by another instance, whose memory is empty, and by one that was there, which a message may reach later.
func (s *Soak) nothingIsOld(round int, after string) {
	s.Helper()
	guard, other := s.Instance(s.Client)
	defer guard.Close()
	want, err := s.Truth(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for id := range int64(soakKeys) {
		var got string
		s.Await("no load that failed meanwhile is remembered", func() bool {
			got, err = other.Get(s.Context(), id)
			return err == nil || errors.Is(err, s.NotFound)
		})
		if got != want[id] {
			s.Errorf("round %d, after %s: product %d is %q (%v), want %q", round, after, id, got, err, want[id])
		}
		s.Await("the tier in memory has it", func() bool {
			got, _ := s.Products.Get(s.Context(), id) // no value
			return got == want[id]
		})
	}
}

// Common are the troubles that all databases have.
func (s *Soak) Common(server *redistest.Server) []Trouble {
	return []Trouble{
		{Name: "a reader was killed", Make: s.Fleet.Kill},
		{Name: "a reader was frozen", Make: s.Fleet.Freeze},
		{Name: "Redis was restarted", Make: server.Restart},
		{Name: "Redis was frozen", Make: func() {
			server.Pause()
			s.Await("Redis does not answer", func() bool { return s.Guard.Invalidate(s.Context(), "other") != nil })
			server.Resume()
		}},
	}
}
