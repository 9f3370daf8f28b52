package rungs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestUpdatesUnderLocksThatOutliveTheirServer(t *testing.T) {
	for _, name := range []string{"mysql", "postgres", "etcd", "zookeeper"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for leases, on servers of their own
			r := rung(t, name)
			started, err := r.Start("")
			if err != nil {
				t.Fatal(err)
			}
			defer started.End()
			for name, test := range map[string]func(*shop){
				"a load that began before the update is not stored": lateLoad,
				"the lock of a killed process passes on":            killedUpdate,
				"an update that loses its lock says so":             lostUpdate,
				"updates go on with larger fences after a restart":  restartedStore,
			} {
				t.Run(name, func(t *testing.T) { test(&shop{T: t, locks: started, redis: redistest.Start(t)}) })
			}
		})
	}
}

func rung(t *testing.T, name string) Rung {
	t.Helper()
	i := slices.IndexFunc(All, func(r Rung) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no rung %q", name)
	}
	return All[i]
}

// TestAProcessThatUpdates is what children run: an update that never ends.
func TestAProcessThatUpdates(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	r := rung(t, os.Getenv("RUNG"))
	err := guard(t, r, os.Getenv("ADDR"), os.Getenv("REDIS")).Update(t.Context(), "k", func(ctx context.Context) error {
		fence, _ := rwlock.FenceFrom(ctx)
		fmt.Println(fence)
		select {}
	})
	t.Fatal(err)
}

// lateLoad makes a load see the source before an update, and end after it.
func lateLoad(s *shop) {
	g, other := s.guard(), s.guard()
	began, end, loaded := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the test; stop: end; joined by receiving
		_, err := cacheguard.Get(s.Context(), g, "k", func(context.Context) (int, error) {
			value, _ := s.source.read()
			close(began)
			<-end
			return value, nil
		})
		loaded <- err
	}()
	<-began
	_, err := s.update(other)
	expect.ErrorIs(s, err, nil)
	close(end)
	expect.ErrorIs(s, <-loaded, nil)
	s.get(other)
	s.get(s.guard())
}

// killedUpdate kills a process in its write. Its write arrives late, when the next one has the lock, and is refused.
func killedUpdate(s *shop) {
	defer s.readers()()
	g := s.guard()
	before := s.updateAtLast(g)
	child := redistest.Child(s, "TestAProcessThatUpdates", "RUNG="+s.locks.Name, "ADDR="+s.locks.Addr, "REDIS="+s.redis.Addr())
	line, err := child.ReadLine(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	var killed int64
	if _, err := fmt.Sscan(line, &killed); err != nil {
		s.Fatal(err)
	}
	found, err := g.Inspect(s.Context(), "k")
	expect.ErrorIs(s, err, nil)
	expect.Equal(s, "updates that Redis knows of", len(found.Writers), 1)
	child.Kill()
	after := s.updateAtLast(g)
	expect.Equal(s, "fences grow", before < killed && killed < after, true)
	expect.ErrorIs(s, s.source.write(killed), errRefused)
	s.stored(g)
}

// lostUpdate freezes the store until the lock is lost.
func lostUpdate(s *shop) {
	defer s.readers()()
	g := s.guard()
	var first int64
	err := g.Update(s.Context(), "k", func(ctx context.Context) error {
		first, _ = rwlock.FenceFrom(ctx)
		for _, m := range s.locks.Members {
			m.Pause()
			defer m.Resume()
		}
		<-ctx.Done()
		return s.source.write(first) // it came late
	})
	expect.ErrorIs(s, err, rwlock.ErrLeaseLost)
	value, _ := s.source.read()
	s.source.finish(value)
	after := s.updateAtLast(s.guard())
	expect.Equal(s, "the fence grows", after > first, true)
	expect.ErrorIs(s, s.source.write(first), errRefused)
	s.stored(g)
}

// restartedStore kills all servers of the locks in the middle of a write, and starts them again.
func restartedStore(s *shop) {
	defer s.readers()()
	g := s.guard()
	fence := int64(0)
	for range 2 {
		err := g.Update(s.Context(), "k", func(ctx context.Context) error {
			first, _ := rwlock.FenceFrom(ctx)
			expect.Equal(s, "the fence grows", first > fence, true)
			fence = first
			s.restart()
			return s.source.write(first)
		})
		s.Log("the update that saw the restart:", err)
		value, _ := s.source.read()
		s.source.finish(value)
		after := s.updateAtLast(g)
		expect.Equal(s, "the fence grows", after > fence, true)
		fence = after
	}
	s.stored(g)
}

// restart kills all servers of the locks, and returns when they answer again, which they do when a majority is there.
func (s *shop) restart() {
	for _, m := range s.locks.Members {
		m.Kill()
	}
	var starting sync.WaitGroup
	for _, m := range s.locks.Members {
		starting.Go(m.Start) // owner: restart; ends when the server answers, or panics; joined below
	}
	starting.Wait()
}

// stored waits until Redis has the value again: nobody stores it before the intent of an update that did not end is over.
func (s *shop) stored(g *cacheguard.Guard) {
	s.Helper()
	value, _ := s.source.read()
	redistest.Await(s, "the value is stored", func() bool {
		loaded := false
		got, err := cacheguard.Get(s.Context(), g, "k", func(context.Context) (int, error) {
			loaded = true
			return value, nil
		})
		return err == nil && !loaded && got == value
	})
}
