package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
)

// slowly are events, and what makes them happen on guard 0, to the key "own". It may wait for the Observer.
var slowly = map[What]func(f *fleet, proxy *redistest.Proxy){
	EventGet:         func(f *fleet, _ *redistest.Proxy) { mustGet(f.t, f.guards[0], "own", returns("v")) },
	EventLoad:        func(f *fleet, _ *redistest.Proxy) { mustGet(f.t, f.guards[0], "own", returns("v")) },
	EventStepped:     func(f *fleet, _ *redistest.Proxy) { f.guards[0].onStepped("own", time.Hour) },
	EventInvalidated: func(f *fleet, _ *redistest.Proxy) { mustInvalidate(f.t, f.guards[1], "own") },
	EventOvertaken: func(f *fleet, _ *redistest.Proxy) { // a renewal finds out
		mustGet(f.t, f.guards[0], "own", func(ctx context.Context) (string, error) {
			mustInvalidate(f.t, f.guards[1], "own")
			redistest.Await(f.t, "its lease is lost", func() bool { return f.guards[0].journal.Times(watch.What(EventOvertaken)) == 1 })
			return "v", ctx.Err()
		})
	},
	EventDamaged: func(f *fleet, _ *redistest.Proxy) {
		f.redis.Set(context.Background(), f.value("own"), "no entry", time.Hour)
		mustGet(f.t, f.guards[0], "own", returns("v"))
	},
	EventRedisError: func(f *fleet, proxy *redistest.Proxy) {
		rule := proxy.On(scriptOf("acquire"), redistest.ReplyError("OOM command not allowed when used memory > 'maxmemory'.")).Times(1)
		mustGet(f.t, f.guards[0], "own", returns("v"))
		<-rule.Hit()
	},
	EventBreaker: func(f *fleet, proxy *redistest.Proxy) {
		proxy.Refuse(true)
		redistest.Await(f.t, "the breaker opens", func() bool {
			_ = expect.Err(Get(f.t.Context(), f.guards[0], "own", returns("v")))
			return f.guards[0].Stats().BreakersOpen > 0
		})
		proxy.Refuse(false)
	},
}

func TestAnObserverThatIsSlowHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for what, provoke := range slowly {
		expect.Beside(t, string(what), func(t *testing.T) {
			told, release := make(chan struct{}), make(chan struct{})
			var first sync.Once
			f, proxy := broken(t, shared, Config{LeaseTTL: 6 * time.Second, Local: LocalConfig{MaxEntries: 100}})
			f.listening()
			alsoTell(f.guards[0], On(what, func(_ context.Context, e Event) {
				if e.Key == "own" || e.Key == "" {
					first.Do(func() {
						close(told)
						<-release
					})
				}
			}))
			long := newSource("v")
			loading := async(f.guards[0], "long", long.load)
			<-long.begun
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				provoke(f, proxy)
			}()
			<-told
			redistest.Await(t, "Redis is asked again", func() bool { return f.guards[0].Stats().BreakersOpen == 0 })
			for i := range 20 {
				key := fmt.Sprint("other", i)
				expect.Equal(t, "a load", mustGet(t, f.guards[0], key, returns("v")), "v")
				expect.Equal(t, "a hit", mustGet(t, f.guards[0], key, unwanted[string](t)), "v")
				mustInvalidate(t, f.guards[0], key)
			}
			for range 2 {
				deadline := f.redis.HGet(t.Context(), f.lease("long"), "deadline").Val()
				redistest.Await(t, "a lease is renewed", func() bool { return f.redis.HGet(t.Context(), f.lease("long"), "deadline").Val() != deadline })
			}
			close(long.release)
			want(t, loading, "v")
			close(release)
			<-ended
		})
	}
}
