package middleware

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A client may accept a stale page for itself only. Others that wait for the same page have not accepted it.
func TestAStalePageStandsInOnlyForRequestsThatAcceptIt(t *testing.T) {
	t.Parallel()
	p := newPage(says("stale", fresh, "Age: 70", `ETag: "a"`))
	f := newFleet(t, 2, Config{}, p)
	f.warm("/")
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	p.held()
	accepts := f.async(0, "/", "Cache-Control: stale-if-error=600")
	<-p.begun
	f.joinedNobody()
	others := []<-chan answer{f.async(0, "/"), f.async(1, "/")}
	f.joins(1)
	f.waits("/", 1)
	close(p.hold)
	expect.Equal(t, "the client that accepts it", (<-accepts).body, "stale")
	for _, other := range others {
		expect.Equal(t, "a client that does not", (<-other).StatusCode, http.StatusServiceUnavailable)
	}
	expect.Equal(t, "reported as stale", f.count(Stale), 1)
}

func TestAStalePageThatAllowsItStandsInForAllRequests(t *testing.T) {
	t.Parallel()
	p := newPage(says("stale", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70"))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	p.held()
	replies := []<-chan answer{f.async(0, "/")}
	<-p.begun
	f.joinedNobody()
	replies = append(replies, f.async(0, "/"))
	f.joins(1)
	close(p.hold)
	for _, reply := range replies {
		expect.Equal(t, "body", (<-reply).body, "stale")
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
	expect.Equal(t, "reported as stale", f.count(Stale), 2)
}

// Whoever has waited for another instance for as long as it may loads by itself. If that fails, the page that it has found before stands in.
func TestAPageStandsInAfterAWaitForAnotherInstanceToo(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]http.HandlerFunc{
		"a load that takes too long": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"the failure of one that obeys its context": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"a failure":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a connection that broke": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waited atomic.Bool
			p := newPage(nil)
			hold := make(chan struct{})
			p.serve = func(w http.ResponseWriter, r *http.Request) {
				switch p.calls.Load() {
				case 1:
					says("page", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70")(w, r)
				case 2: // the one that is waited for
					<-hold
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					waited.Store(true)
					fails(w, r)
				}
			}
			f := newFleetOn(t, shared, 2, Config{}, cacheguard.Config{LoadTimeout: redistest.Brisk, WaitTimeout: time.Millisecond}, p)
			f.warm("/")
			<-p.begun
			first := f.async(0, "/")
			<-p.begun
			second := <-f.async(1, "/")
			close(hold)
			expect.Equal(t, "it has loaded by itself", waited.Load(), true)
			expect.Equal(t, "its body", second.body, "page")
			expect.Equal(t, "the first one's body", (<-first).body, "page")
			expect.Equal(t, "reported as stale", f.count(Stale), 2)
		})
	}
}

func TestAPageThatMayHaveBeenInvalidatedDoesNotStandInForARedisThatIsSilent(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var made atomic.Int32
	f := newFleetOn(t, redis, 1, Config{}, cacheguard.Config{
		StaleFor: time.Hour, RedisTimeout: redistest.Brisk, Local: cacheguard.LocalConfig{MaxEntries: 100, TTL: time.Hour},
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says(fmt.Sprint(made.Add(1)), "Cache-Control: max-age=3600")(w, r)
	}))
	redistest.Await(t, "it is in the tier", func() bool { f.get("/"); return f.guards[0].Stats().LocalEntries > 0 })
	redis.Pause()
	defer redis.Resume()
	redistest.Await(t, "a new one is made", func() bool { return f.get("/").body == "2" })
}
