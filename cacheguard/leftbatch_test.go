package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A key keeps its lease when its callers leave while the loader runs on for another key, and its value is stored: else
// other instances would load it at the same time, and this one once more.
func TestAKeyThatALoadOfManyRunsOnForIsLoadedNowhereElse(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []int{0, 1} {
		f := newFleet(t, standalone(t), 2, Config{HedgeAfter: -1, RedisTimeout: time.Minute})
		g, release := f.guards[0], make(chan struct{})
		load := func(_ context.Context, keys []string) (map[string]string, error) {
			<-release
			return map[string]string{"a": "a", "b": "b"}, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		left, stays := make(chan error, 1), make(chan string, 1)
		go func() { // owner: the test; joined by receiving
			_, err := GetMany(ctx, g, []string{"a", "b"}, load)
			left <- err
		}()
		redistest.Await(t, "it loads", func() bool { return g.Stats().Loading == 1 })
		go func() { stays <- mustGet(t, g, "b", unwanted[string](t)) }() // owner: the test; joined by receiving
		redistest.Await(t, "another call waits for b", func() bool { return g.Stats().Waiting == 3 })
		leave()
		expect.ErrorIs(t, <-left, context.Canceled)
		redistest.Await(t, "nobody waits for a", func() bool { return g.Stats().Waiting == 1 })
		again := make(chan string, 1)
		go func() { again <- mustGet(t, f.guards[elsewhere], "a", unwanted[string](t)) }() // owner: the test; joined by receiving
		redistest.Await(t, "it waits", func() bool { return f.guards[elsewhere].Stats().Waiting == 2-elsewhere })
		close(release)
		expect.Equal(t, "who stays", <-stays, "b")
		expect.Equal(t, "who asks again", <-again, "a")
	}
}
