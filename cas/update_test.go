package cas

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func increment(old int, _ bool) (int, error) { return old + 1, nil }

// updates makes many callers of each store increment one value. It returns how many increments were reported as done, and how many as
// unknown.
func updates(t *testing.T, stores []*Store, callers, times int) (sure, unsure int64) {
	t.Helper()
	var ok, maybe atomic.Int64
	var all sync.WaitGroup
	for _, s := range stores {
		for range callers {
			all.Go(func() {
				for done := 0; done < times; done++ {
					switch _, err := Update(context.Background(), s, "n", increment); {
					case err == nil:
						ok.Add(1)
					case errors.Is(err, ErrUncertain):
						maybe.Add(1)
					case errors.Is(err, breaker.ErrOpen):
						done-- // nothing was sent, as replies of several callers were lost in a row
						runtime.Gosched()
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	return ok.Load(), maybe.Load()
}

func TestUpdatesLoseNothing(t *testing.T) {
	t.Parallel()
	const callers = 8
	times := expect.Samples(10, 25)
	cfg := Config{MaxAttempts: -1, RedisTimeout: patient, Prefix: "test-" + rand.Text()}
	for name, start := range map[string]func(t *testing.T) []*Store{
		"standalone": func(t *testing.T) []*Store {
			return []*Store{newStore(t, shared.Client(t), cfg), newStore(t, shared.Client(t), cfg)}
		},
		"cluster": func(t *testing.T) []*Store {
			c := redistest.StartCluster(t, 0)
			return []*Store{newStore(t, c.Client(t), cfg), newStore(t, c.Client(t), cfg)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := start(t)
			sure, unsure := updates(t, stores, callers, times)
			got, _, err := Get[int](t.Context(), stores[0], "n")
			if err != nil || sure != int64(2*callers*times) || int64(got) != sure {
				t.Errorf("%d after %d updates and %d uncertain ones, %v", got, sure, unsure, err)
			}
		})
	}
}

func TestUpdatesAreDoneOnceThoughRepliesAreLost(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, patient)
	p.near.cfg.MaxAttempts, p.far.cfg.MaxAttempts = -1, -1
	var n atomic.Int64
	every := func(k int64) redistest.Match {
		return func(args []string) bool { return swaps(args) && n.Add(1)%k == 0 }
	}
	lost := p.proxy.On(every(3), redistest.DropReply)
	cut := p.proxy.On(every(5), redistest.CutBefore)
	sure, unsure := updates(t, []*Store{p.near, p.far}, 4, 25)
	got, _, err := Get[int64](t.Context(), p.far, "n")
	if err != nil || got < sure || got > sure+unsure {
		t.Errorf("%d after %d updates and %d uncertain ones, %v", got, sure, unsure, err)
	}
	if lost.Count() == 0 || cut.Count() == 0 {
		t.Error("nothing was lost")
	}
}

func TestUpdateGivesUpAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	s := newStore(t, shared.Client(t), Config{MaxAttempts: 3})
	calls := 0
	_, err := Update(t.Context(), s, "k", func(old int, found bool) (int, error) {
		calls++
		if found != (calls > 1) {
			t.Errorf("call %d: found is %v", calls, found)
		}
		_, version, err := Get[int](t.Context(), s, "k")
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		mustSwap(t, s, "k", version, calls) // somebody else is faster
		return -1, nil
	})
	expect.ErrorIs(t, err, ErrConflict)
	if got, _, _ := Get[int](t.Context(), s, "k"); got != 3 || calls != 3 {
		t.Errorf("%d after %d calls", got, calls)
	}
}

func TestAnErrorOrPanicOfTheFunctionReachesTheCallerAndStoresNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, shared.Client(t), Config{})
	version := create(t, s, "k", 1)
	why := errors.New("why")
	if _, err := Update(t.Context(), s, "k", func(int, bool) (int, error) { return 2, why }); err != why { //nolint:errorlint // as it is
		t.Errorf("%v", err)
	}
	func() {
		defer func() {
			if passed, _ := recover().(error); !errors.Is(passed, why) {
				t.Error("the panic did not pass")
			}
		}()
		_, _ = Update(t.Context(), s, "k", func(int, bool) (int, error) { panic(why) })
	}()
	wantValue(t, s, "k", 1, version)
	_ = s.Close() // nothing is left that it would wait for
}

func TestAnUpdateThatPausesEndsWithTheContextAndWithTheStore(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	s := newStore(t, rdb, Config{MaxAttempts: -1})
	other := newStore(t, rdb, s.cfg)
	for _, c := range []struct {
		end  func(cancel func())
		want error
	}{
		{func(cancel func()) { cancel() }, context.Canceled},
		{func(func()) { _ = s.Close() }, ErrClosed}, // always nil
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		_, err := Update(ctx, s, "k", func(int, bool) (int, error) {
			_, version, err := Get[int](t.Context(), other, "k")
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
			mustSwap(t, other, "k", version, calls) // somebody else is always faster
			if calls++; calls == 3 {
				c.end(cancel)
			}
			return 0, nil
		})
		expect.ErrorIs(t, err, c.want)
	}
}
