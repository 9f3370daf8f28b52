package locktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// OpenSlot holds locks of the name x while their slot of a cluster is moved key by key, and stands open for longer than a lease after each
// key, as after a reshard that was interrupted. hold takes the lock with that Prefix and TTL.
func OpenSlot[L Held](t *testing.T, holds map[string]func(t *testing.T, rdb *redis.ClusterClient, prefix string, ttl time.Duration) L) {
	cluster, ttl := redistest.StartCluster(t, 0), redistest.Brisk
	for how, hold := range holds {
		l, states := hold(t, cluster.Client(t), how, ttl), 0
		for to := 0; states == 0; to++ { // the slot is at one of three nodes
			err := cluster.Move(t.Context(), keys.Slot(keys.Tagged(how, "x")), to, func(moved int) {
				states++
				state := fmt.Sprintf("%s, %d keys moved to node %d", how, moved, to)
				began := time.Now()
				await(t, state+": it is renewed after a TTL", func() bool {
					return l.TrustedUntil().After(began.Add(2*ttl)) || l.Context().Err() != nil
				})
				expect.ErrorIs(t, l.Context().Err())
				expect.ErrorIs(t, l.Extend(t.Context()))
			})
			expect.ErrorIs(t, err)
		}
		expect.ErrorIs(t, l.Unlock(t.Context()))
	}
}
