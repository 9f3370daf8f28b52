package send

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestConnectionThatIsCutInTheMiddleOfAPipelineIsNoLossToItsCallers(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{redistest.CutBefore, redistest.DropReply} {
		s := newStage(t, patient)
		s.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "20" }, fault).Times(1)
		s.mget.Store(false)
		k := keysOf(t, s.Link, 40)
		s.proxy.On(func(args []string) bool { return args[0] == "get" && args[1] == k[20] }, fault).Times(1)
		release := s.occupied("k")
		calls := s.doAll(len(k), "k")
		var reads []asking
		for i, key := range k {
			s.set(key, strconv.Itoa(i))
			reads = append(reads, ask(t, s.Link, key))
		}
		release()
		expectEach(calls)
		for i, a := range reads {
			a.expect(strconv.Itoa(i))
		}
	}
}

// The client sends nothing again. Requests whose replies had come have them, the others have an error, and none has another's reply.
func TestReplyIsItsOwnCallersOrNobodys(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient, func(o *redis.Options) { o.MaxRetries = -1 })
	s.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "20" }, redistest.CutBefore).Times(1)
	release := s.occupied("k")
	calls := s.doAll(40, "k")
	release()
	for i, d := range calls {
		receive(t, d.done)
		if i >= 20 && d.err == nil {
			t.Errorf("call %d was cut off, and has the answer %v", i, d.got)
		}
		if got, _ := d.got.Text(); d.err == nil && got != strconv.Itoa(i) {
			t.Errorf("call %d has the answer %q", i, got)
		}
	}
	do(t, s.Link, echoed("k", "after")).expect("after")
}

// halfway is a connection that breaks in the middle of a long request.
type halfway struct {
	net.Conn
	broken *atomic.Bool // by one of them
}

func (h halfway) Write(b []byte) (int, error) {
	if len(b) < 1000 || !h.broken.CompareAndSwap(false, true) {
		return h.Conn.Write(b)
	}
	n, _ := h.Conn.Write(b[:len(b)/2])
	_ = h.Close()
	return n, net.ErrClosed
}

func TestRequestOfWhichHalfIsWrittenIsSentAgain(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := newStage(t, patient, func(o *redis.Options) {
		o.Dialer = func(_ context.Context, network, addr string) (net.Conn, error) {
			conn, err := net.DialTimeout(network, addr, time.Second)
			return halfway{conn, &broken}, err
		}
	})
	release := s.occupied("k")
	calls := s.doAll(40, "k")
	release()
	expectEach(calls)
	if !broken.Load() {
		t.Error("no connection broke")
	}
}

func TestLinkGoesOnWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	l := newLink(t, rdb, patient)
	for range 3 {
		rdb.Set(t.Context(), "k", "v", 0)
		redistest.Await(t, "an answer", func() bool {
			read := ask(t, l, "k").answer()
			return read.Err == nil && string(read.Raw) == "v"
		})
		do(t, l, echoed("k", "v")).expect("v") // a server that was restarted knows no script
		server.Restart()
	}
}

func TestConnectionThatHangsCostsItsOwnParcelOnly(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	k := keysOf(t, s.Link, 3)
	for i, key := range k {
		s.set(key, strconv.Itoa(i))
	}
	s.mget.Store(false)
	lost := s.proxy.On(func(args []string) bool { return args[0] == "get" && args[1] == k[0] }, redistest.HoldReply).Times(1)
	hangs := ask(t, s.Link, k[0])
	receive(t, lost.Hit())
	for range 5 {
		others := []asking{ask(t, s.Link, k[0]), ask(t, s.Link, k[1]), ask(t, s.Link, k[2])}
		for i, a := range others {
			a.expect(strconv.Itoa(i))
		}
	}
	hangs.expectTimeout()
}
