package link

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// awaitOwnHands returns when a caller would send a request itself.
func (s *stage) awaitOwnHands(key string) {
	s.t.Helper()
	redistest.Await(s.t, "own hands", func() bool {
		ask(s.t, s.Link, key).answer()
		lane := s.reads[0]
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return !lane.gathering && s.own.ready(time.Now())
	})
}

// byOwnHands reports whether the next lone read is seen to be sent by its caller.
func (s *stage) byOwnHands(key string) (own bool) {
	s.t.Helper()
	held := s.hold("get", redistest.Hold)
	defer held.Remove()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if read, err := s.Get(s.t.Context(), key); err != nil || read.Err != nil {
			s.t.Errorf("read %+v, %v", read, err)
		}
	}()
	receive(s.t, held.Hit())
	lane := s.reads[0]
	lane.mu.Lock()
	own = len(lane.flying) == 1 && lane.flying[0].worker == nil
	lane.mu.Unlock()
	held.Release()
	receive(s.t, done)
	return own
}

func TestLoneCallerThatIsNearSendsByItself(t *testing.T) {
	t.Parallel()
	s := bareStage(t, patient)
	redistest.Await(t, "a request by own hands", func() bool { // an earlier reply may have been slow
		s.awaitOwnHands("k")
		return s.byOwnHands("k")
	})
}

func TestCallerThatIsFarLeavesItToAWorker(t *testing.T) {
	t.Parallel()
	s := bareStage(t, patient)
	s.awaitOwnHands("k")
	s.pin(near)
	if s.byOwnHands("k") {
		t.Error("the caller sent it")
	}
}

func TestLostReplyToACallerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := bareStage(t, patient)
	s.set("own hands", "v")
	var lost *redistest.Rule
	redistest.Await(t, "the fault", func() bool {
		s.awaitOwnHands("k")
		lost = s.hold("get", redistest.HoldReply) // a worker would wait for it as long as the test takes
		defer lost.Remove()
		read, err := s.Get(t.Context(), "own hands")
		if err != nil || string(read.Raw) != "v" {
			t.Errorf("read %+v, %v", read, err)
		}
		return lost.Count() == 1
	})
	if time.Duration(s.own.rest.lostPause.Load()) < lostFor {
		t.Error("callers go on losing connections")
	}
}

// A caller that has to dial, because its connections are gone, is not held up by that, and neither are others.
func TestDialThatHangsHoldsUpNeitherItsCallerNorTheLane(t *testing.T) {
	t.Parallel()
	var dialled dialled
	s := bareStage(t, patient, func(o *redis.Options) { o.Dialer = dialled.dial })
	s.awaitOwnHands("k")
	hung, release := dialled.cutAndHang() // the pool has the connections as idle
	defer release()
	for range 3 {
		ask(t, s.Link, "k").expectAbsence()
	}
	receive(t, hung)
}

// dialled has the connections of a client.
type dialled struct {
	mu         sync.Mutex
	all        []net.Conn
	hung, hang chan struct{} // nil: no dial hangs any more, or yet
}

// cutAndHang closes all connections, and makes the next dial hang until it is released. Hung is closed when it hangs.
func (d *dialled) cutAndHang() (hung <-chan struct{}, release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.all {
		_ = conn.Close()
	}
	hang := make(chan struct{})
	d.hung, d.hang = make(chan struct{}), hang
	return d.hung, func() { close(hang) }
}

func (d *dialled) dial(_ context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	hung, hang := d.hung, d.hang
	d.hung, d.hang = nil, nil
	d.mu.Unlock()
	if hung != nil {
		close(hung)
		<-hang
	}
	conn, err := net.DialTimeout(network, addr, 10*time.Second)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, conn)
	}
	return conn, err
}

// The socket's own time-out is longer here, so that the lane goes on without the caller.
func TestCallerWhoseOwnRequestHangsHoldsUpNobodyElseAndCloseWaitsForIt(t *testing.T) {
	t.Parallel()
	s := bareStage(t, patient)
	s.own.timeout, s.own.quick = time.Millisecond, s.client.WithTimeout(patient)
	var held *redistest.Rule
	done := make(chan struct{})
	redistest.Await(t, "a request by own hands", func() bool {
		s.awaitOwnHands("k")
		held = s.hold("get", redistest.Hold)
		go func() {
			_, _ = s.Get(t.Context(), "k") // an error would be the test's end
			done <- struct{}{}
		}()
		receive(t, held.Hit())
		lane := s.reads[0]
		lane.mu.Lock()
		own := len(lane.flying) == 1 && lane.flying[0].worker == nil
		lane.mu.Unlock()
		if !own {
			held.Remove()
			<-done
		}
		return own
	})
	ask(t, s.Link, "k").expectAbsence()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	redistest.Await(t, "it is closing", func() bool {
		s.calls[0].mu.Lock()
		defer s.calls[0].mu.Unlock()
		return s.calls[0].closed
	})
	select {
	case <-closed:
		t.Error("Close has returned while a request was in flight")
	default:
	}
	held.Release()
	receive(t, done)
	receive(t, closed)
}
