package redistest_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

const awaitTimeout = redistest.Patience

// both runs a test for each version of the protocol.
func both(t *testing.T, test func(t *testing.T, protocol func(*redis.Options))) {
	t.Parallel()
	for version := 2; version <= 3; version++ {
		t.Run(fmt.Sprint("RESP", version), func(t *testing.T) {
			t.Parallel()
			test(t, func(o *redis.Options) { o.Protocol = version })
		})
	}
}

// hasty makes a client that soon gives up on a reply.
func hasty(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second }

func TestProxyPassesEveryKindOfReply(t *testing.T) {
	both(t, func(t *testing.T, protocol func(*redis.Options)) {
		rdb := redistest.StartProxy(t, shared.Addr()).Client(t, protocol)
		kinds := []string{"string", "integer", "double", "null", "array", "set", "map", "attrib", "bignum", "verbatim", "true", "false"}
		for _, kind := range kinds {
			want, wantErr := shared.Client(t, protocol).Do(t.Context(), "debug", "protocol", kind).Result()
			got, err := rdb.Do(t.Context(), "debug", "protocol", kind).Result()
			if fmt.Sprint(got, err) != fmt.Sprint(want, wantErr) {
				t.Errorf("%s: %v, %v through the proxy, %v, %v without", kind, got, err, want, wantErr)
			}
		}
	})
}

func TestProxyPassesBinaryAndLargeValues(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	rdb := redistest.StartProxy(t, shared.Addr()).Client(t)
	value := strings.Repeat("\r\n$-1\r\n\x00", 200_000)
	if err := rdb.Set(t.Context(), key, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := rdb.Get(t.Context(), key).Result(); err != nil || got != value {
		t.Errorf("got %d bytes of %d, %v", len(got), len(value), err)
	}
}

func TestProxyPassesTransactions(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	rdb := redistest.StartProxy(t, shared.Addr()).Client(t)
	cmds, err := rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.Set(t.Context(), key, "1", 0)
		tx.Incr(t.Context(), key)
		return nil
	})
	if err != nil || cmds[1].(*redis.IntCmd).Val() != 2 {
		t.Errorf("%v, %v", cmds, err)
	}
}

func TestProxyCountsCommandsByName(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	_, _ = rdb.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Get(t.Context(), "a")
		pipe.Do(t.Context(), "GeT", "b")
		pipe.Exists(t.Context(), "c")
		return nil
	})
	if got := p.Commands(); got["get"] != 2 || got["exists"] != 1 {
		t.Errorf("Commands() = %v", got)
	}
}

func TestProxyDelaysEachCommand(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	set(t, rdb, key)
	p.Delay(50 * time.Millisecond)
	start := time.Now()
	set(t, rdb, key)
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("took %v", took)
	}
	p.Delay(time.Hour)
	if err := rdb.WithTimeout(50*time.Millisecond).Set(t.Context(), key, "v", 0).Err(); !isTimeout(err) {
		t.Errorf("with a long delay: %v, want a timeout", err)
	}
}

func TestProxyCutsConnectionsAndTakesNewOnes(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t, once)
	conn := rdb.Conn()
	t.Cleanup(func() { _ = conn.Close() })
	set(t, conn, key)
	p.Cut()
	if err := conn.Get(t.Context(), key).Err(); err == nil || isTimeout(err) {
		t.Errorf("on a cut connection: %v", err)
	}
	set(t, p.Client(t), key)
}

func TestProxyRefusesConnectionsUntilItAcceptsThemAgain(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	conn := p.Client(t, once).Conn()
	t.Cleanup(func() { _ = conn.Close() })
	set(t, conn, key)
	p.Refuse(true)
	p.Refuse(true) // no change
	if err := conn.Get(t.Context(), key).Err(); err == nil || isTimeout(err) {
		t.Errorf("on an old connection: %v", err)
	}
	if err := p.Client(t, once).Get(t.Context(), key).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("on a new connection: %v, want ECONNREFUSED", err)
	}
	if other, err := net.ListenPacket("udp", p.Addr()); err == nil {
		t.Errorf("another test gets the port: %v", other.Close())
	}
	p.Refuse(false)
	p.Refuse(false)
	set(t, p.Client(t), key)
}

func TestProxyBlackHoleSwallowsCommandsAndKeepsTheConnectionOpen(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t, hasty)
	set(t, rdb, key)
	p.BlackHole(true)
	if err := rdb.Del(t.Context(), key).Err(); !isTimeout(err) {
		t.Errorf("on an old connection: %v, want a timeout", err)
	}
	if err := p.Client(t, hasty).Del(t.Context(), key).Err(); !isTimeout(err) {
		t.Errorf("on a new connection: %v, want a timeout", err)
	}
	p.BlackHole(false)
	if n, err := rdb.Exists(t.Context(), key).Result(); n != 1 || err != nil {
		t.Errorf("EXISTS = %d, %v after the black hole: a command came out of it", n, err)
	}
}

func TestProxyBlackHoleSwallowsTheReplyOfACommandUnderWay(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	held := p.On(redistest.Command("incr"), redistest.HoldReply).Times(1)
	conn := p.Client(t, hasty).Conn()
	t.Cleanup(func() { _ = conn.Close() })
	failed := goErr(t, func() error { return conn.Incr(t.Context(), key).Err() })
	await(t, held.Hit())
	p.BlackHole(true)
	held.Release()
	if err := <-failed; !isTimeout(err) {
		t.Errorf("INCR: %v, want a timeout", err)
	}
}

func TestProxyReportsAServerThatIsDownAsAClosedConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	s.Kill()
	if err := p.Client(t, once).Get(t.Context(), "k").Err(); err == nil || isTimeout(err) {
		t.Errorf("GET: %v, want a closed connection", err)
	}
}

// fresh returns a key for the test, which the shared server may have from an earlier run of it.
func fresh(t *testing.T) string {
	t.Helper()
	if err := shared.Client(t).Del(t.Context(), t.Name()).Err(); err != nil {
		t.Fatal(err)
	}
	return t.Name()
}

// goErr runs call beside the test.
func goErr(t *testing.T, call func() error) <-chan error {
	t.Helper()
	result, done := make(chan error, 1), make(chan struct{})
	go func() { // owner: the test; stops when call returns; joined by the cleanup
		defer close(done)
		result <- call()
	}()
	t.Cleanup(func() { await(t, done) })
	return result
}

// await waits for c, and fails the test if nothing comes.
func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(awaitTimeout):
		t.Fatal("nothing came")
	}
}
