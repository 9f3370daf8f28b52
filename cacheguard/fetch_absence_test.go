package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// An absence that was read before the value was stored does not answer a call that begins after that.
func TestFetchWithoutLoadFindsWhatWasStoredBeforeItBegan(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: 15 * time.Second})
	late := proxy.On(steps["get"], redistest.HoldReply).Times(1)
	type fetched struct {
		value string
		err   error
	}
	fetch := func() <-chan fetched {
		c := make(chan fetched, 1)
		go func() { // owner: the test; ends with Fetch; joined by receiving
			v, _, err := Fetch(t.Context(), f.guards[0], "k", Source[string]{})
			c <- fetched{v, err}
		}()
		return c
	}
	first := fetch()
	<-late.Hit() // Redis has said that there is nothing
	mustGet(t, f.guards[1], "k", returns("v"))
	redistest.Await(t, "the value is stored", func() bool { return f.exists(f.value("k")) })
	second := fetch()
	polls := 0
	redistest.Await(t, "the second has its answer, or waits for the first one's", func() bool {
		polls++
		return len(second) == 1 || polls > 100
	})
	late.Release()
	if got := <-second; got.value != "v" || got.err != nil {
		t.Errorf("the second found %q, %v", got.value, got.err)
	}
	<-first
}

// The next call on this Guard gets what a load has returned, even if the load ran for another loader.
func TestFetchWithoutLoadWaitsWhileAValueIsStored(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"a caller", "a loader"} {
		t.Run("for "+by, func(t *testing.T) {
			t.Parallel()
			f, proxy := broken(t, shared, Config{RedisTimeout: 15 * time.Second, LeaseTTL: time.Minute})
			g := f.guards[0]
			fill := proxy.On(steps["fill"], redistest.Hold).Times(1)
			get := func(ctx context.Context) (string, error) { return Get(ctx, g, "k", returns("v")) }
			if by == "a caller" {
				_, err := get(t.Context())
				expect.Equal(t, "error", err, nil)
			} else {
				_, err := Get(t.Context(), g, "outer", get)
				expect.Equal(t, "error", err, nil)
			}
			<-fill.Hit()
			read := proxy.On(steps["get"], redistest.HoldReply).Times(1)
			found := make(chan error, 1)
			go func() { // owner: the test; ends with Fetch; joined by receiving
				_, _, err := Fetch(t.Context(), g, "k", Source[string]{})
				found <- err
			}()
			<-read.Hit() // Redis has said that there is nothing
			fill.Release()
			redistest.Await(t, "the value is stored", func() bool { return f.exists(f.value("k")) })
			read.Release()
			expect.Equal(t, "error of Fetch", <-found, nil)
		})
	}
}
