package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/invalidate"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Each part of a cluster has epochs of its own, so a node that is away concerns its own keys.
func TestTaggedEntriesOfOtherNodesAreHitsWhileANodeIsAwayAndTheirTagsCanBeInvalidated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	f := newFleetOn(t, rdb, Config{RedisTimeout: 2 * time.Second}, rdb) // a machine that is busy is not a node that hangs
	f.events.quiet = true
	g := f.guards[0]
	ofHung := func(key string) bool { return g.partOf(key) < health.Parts/3 } // masters have equal shares, in order
	keys := numbered(0, 60)
	for range 2 { // the second load knows the tags
		for _, key := range keys {
			mustGet(t, g, key, tagged("old", "t", "u"))
		}
	}
	c.Node(0).Pause()
	defer c.Node(0).Resume()
	for _, key := range keys {
		if !ofHung(key) {
			v, how, err := get(ctx, g, key, unwanted[string](t))
			if v != "old" || how != Hit || err != nil {
				t.Errorf("%s: %q, %s, %v", key, v, how, err)
			}
		}
	}
	err := g.InvalidateTags(ctx, "t")
	if failed, is := errors.AsType[*RedisError](err); !is || failed.Key != "t" {
		t.Errorf("error: %v", err)
	}
	for part := range health.Parts {
		expect.Equal(t, "pending", g.ofEpochs.Pending.Has(invalidate.ID(part, epoch.OfTag("t"))), part < health.Parts/3)
	}
	for _, key := range keys {
		if !ofHung(key) {
			expect.Equal(t, key, mustGet(t, g, key, tagged("new", "t", "u")), "new")
		}
	}
}
