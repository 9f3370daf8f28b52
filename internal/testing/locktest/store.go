package locktest

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"
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
