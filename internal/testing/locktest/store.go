package locktest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fencedStore is what the locks of a storm protect: a number that is read and written with a fence, and refuses a smaller one
// than it has seen. Any process reaches it by TCP.
type fencedStore struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]bool
	value    int
	fence    int64
	holder   string
	written  int
	refused  int
	problems []string
}

func startStore(tb testing.TB) *fencedStore {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &fencedStore{listener: l, conns: make(map[net.Conn]bool)}
	s.serving.Go(s.accept) // owner: the store; stop: the listener's end; joined below
	tb.Cleanup(func() {
		_ = l.Close() // it is of no use any more
		s.mu.Lock()
		for c := range s.conns {
			_ = c.Close() // as above
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	return s
}

func (s *fencedStore) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(c) }) // owner: the store; stop: the connection's end; joined by Cleanup
	}
}

func (s *fencedStore) serve(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		var verb, holder string
		var fence int64
		var value int
		if _, err := fmt.Sscan(lines.Text(), &verb, &holder, &fence, &value); err != nil {
			return
		}
		if _, err := fmt.Fprintln(c, s.do(verb, holder, fence, value)); err != nil {
			return
		}
	}
}

// refused is the answer to a fence that is too small.
const refused = -1

// do reads or writes, and returns the value, or refused.
func (s *fencedStore) do(verb, holder string, fence int64, value int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case fence < s.fence:
		s.refused++
		return refused
	case fence == s.fence && holder != s.holder:
		s.problems = append(s.problems, fmt.Sprintf("fence %d of both %s and %s", fence, s.holder, holder))
	}
	s.fence, s.holder = fence, holder
	if verb == "write" {
		if value != s.value+1 {
			s.problems = append(s.problems, fmt.Sprintf("%s writes %d after %d", holder, value, s.value))
		}
		s.value = value
		s.written++
	}
	return s.value
}

func (s *fencedStore) progress() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// exhaust asks for memory until there is none. It does not return.
func exhaust() {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1, Max: 1}) // what it has, it keeps
	var all [][]byte
	for i := 0; ; i++ {
		all = append(all, make([]byte, 64<<20))
		all[i][0] = all[0][0]
	}
}

// exhaustedHolder makes the holder run out of memory: the runtime ends it at once, and nothing is cleaned up.
func exhaustedHolder(b *bench) {
	holder := b.child("lock")
	fence := b.fenceOf(holder)
	next := b.ask(patient(b), b.open())
	holder.WriteLine("exhaust")
	if holder.Wait() == nil {
		b.Fatal("it has enough memory")
	}
	l := b.granted(next)
	expectGreater(b, l.Fence(), fence)
	b.unlock(l)
	b.awaitAsking(0)
}

// lostDisk takes the data of the only server, or of one of several.
func lostDisk(b *bench) {
	if len(b.server.Members) > 1 {
		lostMember(b)
		return
	}
	cfg := b.config()
	cfg.TTL = time.Minute
	began := time.Now()
	l := b.lock(b.kind.Open(b, b.server.Addr, cfg))
	b.server.Members[0].Lose()
	next := b.kind.Open(b, b.server.Addr, cfg)
	var after Lease
	await(b, "the lock is somebody else's", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		after, err = next.TryLock(ctx, "x")
		return err == nil
	})
	switch took := time.Since(began); {
	case took > cfg.TTL:
		b.Skipf("the server took %v to come back, and the lock would have ended by then", took)
	case b.kind.Clocked:
		expectGreater(b, after.Fence(), l.Fence())
	}
	b.Logf("forgotten: fence %d after %d; the first holder's context lives: %v", after.Fence(), l.Fence(), l.Context().Err() == nil)
}

// lostMember takes the data of one member under load, of the one that leads if one does, and has it replaced.
func lostMember(b *bench) {
	s := b.storm()
	lost := 0
	if b.server.Leader != nil {
		lost = b.server.Leader(b)
	}
	b.server.Members[lost].Lose()
	s.goesOn(5)
	s.end()
}
