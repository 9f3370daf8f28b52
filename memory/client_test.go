package memory_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/redis/serverinfo"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/memory"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/segment"
	"github.com/cacheguard/go/semaphore"
)

func open(t *testing.T) *redis.Client {
	t.Helper()
	rdb, err := memory.New(memory.Config{MaxBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() }) // a test may have closed it
	return rdb
}

// made is what New has made, which ends with the test.
func made[T interface{ Close() error }](t *testing.T, it T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.Equal(t, "closed", it.Close(), nil) })
	return it
}

func newGuard(t *testing.T, rdb *redis.Client, cfg cacheguard.Config) *cacheguard.Guard {
	t.Helper()
	cfg.Prefix = "shop"
	guard, err := cacheguard.New(rdb, cfg)
	return made(t, guard, err)
}

// checks are the self-checks of whatever takes a client.
func checks(t *testing.T, rdb *redis.Client) map[string]func(ctx context.Context) error {
	t.Helper()
	locks, err := mutex.New(rdb, mutex.Config{Prefix: "shop"})
	made(t, locks, err)
	readers, err := rwlock.New(rdb, rwlock.Config{Prefix: "shop"})
	made(t, readers, err)
	permits, err := semaphore.New(rdb, semaphore.Config{Prefix: "shop", Permits: 2})
	made(t, permits, err)
	store, err := cas.New(rdb, cas.Config{Prefix: "shop"})
	made(t, store, err)
	counter, err := segment.New(rdb, segment.Config{Prefix: "shop"})
	made(t, counter, err)
	return map[string]func(ctx context.Context) error{
		"Guard":     newGuard(t, rdb, cacheguard.Config{Local: cacheguard.LocalConfig{TTL: time.Minute, MaxBytes: 1 << 20}}).SelfCheck,
		"mutex":     locks.SelfCheck,
		"rwlock":    readers.SelfCheck,
		"semaphore": permits.SelfCheck,
		"cas":       store.SelfCheck,
		"segment":   counter.SelfCheck,
	}
}

func TestWhateverTakesAClientTakesIt(t *testing.T) {
	t.Parallel()
	for name, check := range checks(t, open(t)) {
		expect.Equal(t, name, check(t.Context()), nil)
	}
}

func TestItSaysWhatItIs(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "name", serverinfo.Ask(t.Context(), open(t)).String(), "memory 7.0.15, standalone")
	expect.Equal(t, "where", newGuard(t, open(t), cacheguard.Config{}).Stats().Redis, "memory, database 0")
}

// The page shows a Guard and a lock of this process, and looks them up.
func TestThePageShowsIt(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	guard := newGuard(t, rdb, cacheguard.Config{})
	locks, err := mutex.New(rdb, mutex.Config{Prefix: "shop"})
	made(t, locks, err)
	_, err = cacheguard.Get(t.Context(), guard, "k", func(context.Context) (string, error) { return "v", nil })
	expect.Equal(t, "get", err, nil)
	page := admin.NewHandler(admin.Config{Guards: []*cacheguard.Guard{guard}, Lockers: []admin.Locker{locks}})
	look := func(query string) string {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/?"+query, http.NoBody))
		expect.Equal(t, query, w.Code, http.StatusOK)
		return w.Body.String()
	}
	held, err := locks.TryLock(t.Context(), "name")
	expect.Equal(t, "lock", err, nil)
	for query, want := range map[string]string{
		"view=data":                    `"redis":"memory, database 0"`,
		"view=key&guard=0&key=k":       `"state":"fresh"`,
		"view=lock&locker=0&name=name": `"fence":`,
	} {
		if got := look(query); !strings.Contains(got, want) {
			t.Errorf("%s has no %s: %s", query, want, got)
		}
	}
	expect.Equal(t, "unlock", held.Unlock(t.Context()), nil)
}

// Once runs something once for all who share the client, and remembers that.
func TestOnceIsOnce(t *testing.T) {
	t.Parallel()
	rdb, ran := open(t), 0
	for range 3 {
		locks, err := mutex.New(rdb, mutex.Config{Prefix: "shop"})
		made(t, locks, err)
		_, err = locks.Once(t.Context(), "order", time.Hour, func(context.Context, *mutex.Lease) error { ran++; return nil })
		expect.Equal(t, "once", err, nil)
	}
	expect.Equal(t, "ran", ran, 1)
}

func TestGuardsOfOneClientShareOneLoad(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	var loads atomic.Int64
	release := make(chan struct{})
	load := func(context.Context) (string, error) {
		loads.Add(1)
		<-release
		return "value", nil
	}
	var all sync.WaitGroup
	const guards = 4
	var waiting []*cacheguard.Guard
	for range guards {
		waiting = append(waiting, newGuard(t, rdb, cacheguard.Config{}))
	}
	for _, guard := range waiting {
		all.Go(func() { // joined below; ends when it is released
			value, err := cacheguard.Get(t.Context(), guard, "key", load)
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, "value", value, "value")
		})
	}
	for ctx := t.Context(); ; {
		waits := 0
		for _, guard := range waiting {
			waits += guard.Stats().Waiting
		}
		if waits == guards || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(release)
	all.Wait()
	expect.Equal(t, "loads", loads.Load(), 1)
}

func TestAnUpdateReachesTheLocalTiersOfOtherGuards(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	local := cacheguard.Config{Local: cacheguard.LocalConfig{TTL: time.Hour, MaxBytes: 1 << 20}}
	one, other := newGuard(t, rdb, local), newGuard(t, rdb, local)
	var price atomic.Int64
	read := func(g *cacheguard.Guard) int64 {
		got, err := cacheguard.Get(t.Context(), g, "price", func(context.Context) (int64, error) { return price.Load(), nil })
		expect.Equal(t, "error", err, nil)
		return got
	}
	for i := range int64(20) {
		err := one.Update(t.Context(), "price", func(context.Context) error {
			price.Store(i)
			return nil
		})
		expect.Equal(t, "update", err, nil)
		for read(other) != i { // the message is under way for a moment
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func TestTwoClientsShareNothing(t *testing.T) {
	t.Parallel()
	for range 2 {
		locks, err := mutex.New(open(t), mutex.Config{Prefix: "shop"})
		held, err := made(t, locks, err).TryLock(t.Context(), "name")
		expect.Equal(t, "lock", err, nil)
		defer func() { expect.Equal(t, "unlock", held.Unlock(t.Context()), nil) }()
	}
}

func TestALockPassesOnWithoutAskingAgain(t *testing.T) {
	t.Parallel()
	locks, err := mutex.New(open(t), mutex.Config{Prefix: "shop"})
	made(t, locks, err)
	count := 0
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { // joined below
			err := locks.Do(t.Context(), "name", func(context.Context, *mutex.Lease) error {
				count++ // the lock guards it
				return nil
			})
			expect.Equal(t, "do", err, nil)
		})
	}
	all.Wait()
	expect.Equal(t, "count", count, 20)
}

func TestCloseEndsIt(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	sub := rdb.Subscribe(t.Context(), "news")
	_, err := sub.Receive(t.Context())
	expect.Equal(t, "subscribed", err, nil)
	expect.Equal(t, "close", rdb.Close(), nil)
	expect.ErrorIs(t, rdb.Get(t.Context(), "key").Err(), redis.ErrClosed)
	expect.ErrorIs(t, rdb.Do(t.Context(), "hset", "key", "field", "value").Err(), redis.ErrClosed)
	if _, err := sub.Receive(t.Context()); err == nil {
		t.Error("the subscription lives")
	}
	_ = sub.Close() // it has ended
}

func TestWhatTheLibraryDoesNotSendIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	for _, args := range [][]any{{"randomkey"}, {"eval", "return redis.call('KEYS', '*')", 0}, {"flushall"}} {
		err := rdb.Do(t.Context(), args...).Err()
		if err == nil {
			t.Errorf("%v is answered", args)
		}
		t.Log(err)
	}
	expect.Equal(t, "typed", rdb.HSet(t.Context(), "hash", "a", "1").Err(), nil) // which a connection answers
	expect.Equal(t, "read", rdb.HGetAll(t.Context(), "hash").Val()["a"], "1")
}

// outage refuses everything.
type outage struct{ err error }

func (o *outage) Allow() error     { return o.err }
func (*outage) ReportResult(error) {}

func TestALimiterMayRefuse(t *testing.T) {
	t.Parallel()
	down := new(outage)
	rdb, err := memory.New(memory.Config{MaxBytes: 1 << 20, Limiter: down})
	made(t, rdb, err)
	down.err = errors.New("an outage")
	expect.ErrorIs(t, rdb.Get(t.Context(), "key").Err(), down.err)
	expect.ErrorIs(t, rdb.HGetAll(t.Context(), "key").Err(), down.err)
	_, err = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Do(t.Context(), "del", "key").Err() })
	expect.ErrorIs(t, err, down.err)
	down.err = nil
	expect.Equal(t, "set", rdb.Do(t.Context(), "set", "key", "value").Err(), nil)
}

func TestAContextThatHasEndedAsksNothing(t *testing.T) {
	t.Parallel()
	rdb := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, rdb.Set(ctx, "key", "value", 0).Err(), context.Canceled)
	if err := rdb.Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Error(err)
	}
}
