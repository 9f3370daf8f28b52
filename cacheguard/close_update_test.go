package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/rwlock"
)

// Updates that have lost their locks give them up themselves, while Close ends everything.
func TestCloseBesideUpdatesThatHaveLostTheirLocksJoinsThemAll(t *testing.T) {
	t.Parallel()
	for range 3 {
		f := newFleet(t, standalone(t), 1, Config{LeaseTTL: time.Second})
		g := f.guards[0]
		var writing, all sync.WaitGroup
		lost := make(chan struct{})
		lose := sync.OnceFunc(func() { close(lost) })
		var deleted atomic.Bool
		for i := range 40 {
			writing.Add(1)
			all.Go(func() { // owner: the test; ends with Update; joined below
				early := false // the machine stood still, and Redis may have had the lock all the same
				began := sync.OnceFunc(writing.Done)
				defer lose()
				defer began() // it may lose its lock before it writes
				err := g.Update(context.Background(), fmt.Sprint("k", i), func(ctx context.Context) error {
					began()
					<-ctx.Done()
					lose()
					early = !deleted.Load()
					return nil
				})
				if !early && !errors.Is(err, rwlock.ErrLeaseLost) && !errors.Is(err, rwlock.ErrClosed) {
					t.Error(err)
				}
			})
		}
		writing.Wait()
		for i := range 40 {
			f.redis.Del(t.Context(), keys.Tagged(g.cfg.Prefix, fmt.Sprint("k", i))+":rw")
		}
		deleted.Store(true)
		<-lost
		_ = g.Close() // always nil
		all.Wait()
	}
}
