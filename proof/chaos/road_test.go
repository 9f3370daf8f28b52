package chaos

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// road is the way of a process to its Redis. What is on it can be held up; then it arrives late, in its order.
type road struct {
	listener net.Listener
	to       string
	tasks    sync.WaitGroup

	mu    sync.Mutex
	lanes map[*lane]struct{}
}

// lane is a connection on it.
type lane struct {
	client, server net.Conn
	subscribed     atomic.Bool
	until          atomic.Int64 // nothing arrives before
	each           atomic.Int64 // and each piece so much later
}

func buildRoad(t *testing.T, to string) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{listener: listener, to: to, lanes: make(map[*lane]struct{})}
	r.tasks.Go(r.accept) // owner: the road; stop: the listener is closed; joined below
	t.Cleanup(func() {
		_ = listener.Close()
		r.some(anyLane, (*lane).cut)
		r.tasks.Wait()
	})
	return r
}

func (r *road) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = client.Close() // it sees that there is no server
			continue
		}
		l := &lane{client: client, server: server}
		r.mu.Lock()
		r.lanes[l] = struct{}{}
		r.mu.Unlock()
		r.tasks.Go(func() { l.up() }) // owner: the road; stop: either end is closed; joined at the end of the test
		r.tasks.Go(func() {           // as above
			l.down()
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.lanes, l)
		})
	}
}

func anyLane(*lane) bool { return true }

func subscription(l *lane) bool { return l.subscribed.Load() }

// some does something to some lanes.
func (r *road) some(which func(*lane) bool, do func(*lane)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.lanes {
		if which(l) {
			do(l)
		}
	}
}

func (l *lane) cut() {
	l.until.Store(0)
	l.each.Store(0)
	_, _ = l.client.Close(), l.server.Close() // the other end may have been faster
}

func (l *lane) up() {
	defer l.cut()
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.client.Read(buffer)
		if bytes.Contains(buffer[:min(n, 300)], []byte("subscribe\r\n")) {
			l.subscribed.Store(true)
		}
		if _, failed := l.server.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (l *lane) down() {
	defer l.cut()
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(buffer)
		for mono() < l.until.Load() {
			<-time.After(5 * time.Millisecond)
		}
		<-time.After(time.Duration(l.each.Load()))
		if _, failed := l.client.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
