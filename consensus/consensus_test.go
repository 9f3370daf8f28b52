package consensus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/mutex"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// shelf is a store that gives one claim after the other.
type shelf struct {
	claims chan *claim
	closed bool
}

func (s *shelf) Acquire(ctx context.Context, _ string, wait bool) (store.Claim, error) {
	select {
	case c := <-s.claims:
		return c, nil
	default:
	}
	if !wait {
		return nil, store.ErrTaken
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *shelf) Close() { s.closed = true }

// claim notes what is done with it.
type claim struct {
	sent time.Time
	err  error // of Release

	mu     sync.Mutex
	story  string
	holder store.Holder
}

func (c *claim) Fence() int64    { return 7 }
func (c *claim) Token() string   { return "token" }
func (c *claim) Sent() time.Time { return c.sent }

func (c *claim) Keep(h store.Holder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.story += "kept "
	c.holder = h
}

func (c *claim) Release(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.story += "released "
	return c.err
}

func newLocker(t *testing.T, claims ...*claim) (*Locker, *shelf) {
	t.Helper()
	s := &shelf{claims: make(chan *claim, len(claims))}
	for _, c := range claims {
		s.claims <- c
	}
	k, err := newOn(s, Config{}, func(Config, *lifecycle.Life) store.Store { return s })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k, s
}

func TestConfigErrorsNameTheField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cfg   Config
		field string
	}{
		{Config{Prefix: "{"}, "Prefix"}, {Config{TTL: time.Millisecond}, "TTL"}, {Config{TTL: -1}, "TTL"}, {Config{Timeout: -1}, "Timeout"},
	} {
		_, err := newOn(&shelf{}, test.cfg, nil)
		if err == nil || !strings.Contains(err.Error(), "Config."+test.field+": ") {
			t.Errorf("%+v: %v", test.cfg, err)
		}
	}
	if _, err := newOn((*shelf)(nil), Config{}, nil); err == nil {
		t.Error("a nil client is accepted")
	}
}

func TestNilLockersAndLeasesSayWhyTheyAreNil(t *testing.T) {
	t.Parallel()
	var k *Locker
	_, err := k.Lock(t.Context(), "x")
	expect.ErrorIs(t, err, errNilLocker)
	expect.ErrorIs(t, k.Close(), nil)
	var l *Lease
	expect.ErrorIs(t, l.Unlock(t.Context()), errNilLease)
	expect.ErrorIs(t, context.Cause(l.Context()), errNilLease)
	expect.Equal(t, "fence", l.Fence(), 0)
}

func TestErrorsAreThoseOfPackageMutex(t *testing.T) {
	t.Parallel()
	k, _ := newLocker(t)
	_, err := k.TryLock(t.Context(), "x")
	expect.ErrorIs(t, err, mutex.ErrNotAcquired)
	expect.ErrorIs(t, k.Close(), nil)
	_, err = k.TryLock(t.Context(), "x")
	expect.ErrorIs(t, err, mutex.ErrClosed)
}

func TestAClaimThatIsOverWhenItArrivesIsKeptBeforeItIsReleased(t *testing.T) {
	t.Parallel()
	for range 50 {
		late := &claim{sent: time.Now().Add(-time.Hour)}
		k, s := newLocker(t, late)
		_, err := k.Lock(t.Context(), "x")
		expect.ErrorIs(t, err, ErrLeaseLost)
		expect.ErrorIs(t, k.Close(), nil) // joins the release
		expect.Equal(t, "what was done", late.story, "kept released ")
		expect.Equal(t, "the store is closed", s.closed, true)
	}
}

func TestALostLeaseIsReleasedOnceAlsoWhenItIsUnlocked(t *testing.T) {
	t.Parallel()
	c := &claim{sent: time.Now(), err: errors.New("away")}
	k, _ := newLocker(t, c)
	l, err := k.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	c.holder.Lost()
	expect.ErrorIs(t, context.Cause(l.Context()), ErrLeaseLost)
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrLeaseLost)
	expect.ErrorIs(t, k.Close(), nil)
	expect.Equal(t, "what was done", c.story, "kept released ")
}
