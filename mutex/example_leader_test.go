package mutex_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// lead has this process lead whenever it is its turn, until ctx ends. The context of work ends when it does not lead any more.
func lead(ctx context.Context, locks *mutex.Locker, work func(ctx context.Context, fence int64) error) {
	for ctx.Err() == nil {
		err := locks.Do(ctx, "leader", func(ctx context.Context, l *mutex.Lease) error {
			return work(ctx, l.Fence())
		})
		if err == nil || ctx.Err() != nil {
			continue // the work is done, or the process ends: the next one leads at once
		}
		log.Printf("does not lead any more, or could not: %v", err) // errors.Is(err, mutex.ErrLeaseLost): another one may have led meanwhile
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func Example_leaderElection() {
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-leader", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ctx, stop := context.WithCancel(context.Background())
	lead(ctx, locks, func(ctx context.Context, fence int64) error {
		fmt.Println("leads", fence > 0)
		stop() // a leader goes on until its context ends
		<-ctx.Done()
		return ctx.Err()
	})
	// Output: leads true
}

// reign is a time of one candidate as the leader.
type reign struct {
	candidate int
	fence     int64
}

func TestOneCandidateLeadsAtATimeAndTheNextOneHasALargerFence(t *testing.T) {
	t.Parallel()
	server := redistest.SharedServers(t, 1)[0]
	prefix, reigns := "test-"+rand.Text(), make(chan reign)
	var leads atomic.Pointer[context.Context] // of the last one
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan int, 3)
	roads := make([]*redistest.Proxy, 3)
	leaves := make([]context.CancelFunc, 3)
	for i := range 3 {
		roads[i] = redistest.StartProxy(t, server.Addr())
		locks, err := mutex.New(roads[i].Client(t), mutex.Config{Prefix: prefix, TTL: 2 * time.Second, RedisTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		candidate, leave := context.WithCancel(ctx)
		leaves[i] = leave
		defer leave()
		go func() { // owner: the test; ends with its context; joined below
			lead(candidate, locks, func(ctx context.Context, fence int64) error {
				if before := leads.Swap(&ctx); before != nil {
					<-(*before).Done() // a busy machine may say so late: what is done until then has a smaller fence
				}
				reigns <- reign{i, fence}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			over <- i
		}()
	}
	first := <-reigns
	roads[first.candidate].BlackHole(true) // it cannot renew its lease any more
	second := <-reigns
	roads[first.candidate].BlackHole(false)
	roads[first.candidate].Cut()
	leaves[second.candidate]() // it ends in an orderly way
	expect.Equal(t, "gone", <-over, second.candidate)
	third := <-reigns
	if first.fence >= second.fence || second.fence >= third.fence || third.candidate == second.candidate {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	stop()
	<-over
	<-over
}
