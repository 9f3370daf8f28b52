package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/testing/expect"
)

// intentStage runs an order of the models of intents with the code, on a real Redis: the intent is on the key, or on its tag.
type intentStage struct {
	epochStage
	changes Changes
	dies    bool
	in      *Intent
}

// transact is a step of the transaction, or of the death of its process.
func (s *intentStage) transact(ctx context.Context) (err error) {
	switch s.written++; {
	case s.written == 1:
		if s.in, err = s.g.Intend(ctx, s.changes); err == nil && s.dies {
			s.in.kept.Stop()
		}
	case s.written == 2:
		s.source = "new"
	case s.written == 3 && s.dies:
		s.elapse(ctx)
	case s.written == 4 && s.dies:
		s.remove(ctx)
	case s.written == 4:
		err = s.in.Done(ctx)
	}
	return err
}

// untils are the keys of the intents, by what they stand on.
func (s *intentStage) untils() []string {
	begin := s.g.cfg.Prefix + ":{0}:epoch:until:"
	return []string{s.g.keys.ValueKey(s.key) + ":until", begin + "t:" + s.tag, begin + "tags"}
}

// elapse makes the intent one that has ended by the clock. Others on all tags together are from orders that are over.
func (s *intentStage) elapse(ctx context.Context) {
	rdb := s.g.rdb.(client)
	for _, key := range s.untils() {
		for _, member := range rdb.ZRange(ctx, key, 0, -1).Val() {
			rdb.ZAdd(ctx, key, redis.Z{Member: member, Score: 1})
		}
	}
}

// remove removes what has the TTL of the intent, as Redis does then.
func (s *intentStage) remove(ctx context.Context) {
	rdb := s.g.rdb.(client)
	begin := s.g.cfg.Prefix + ":{0}:epoch:"
	for _, key := range []string{s.g.keys.ValueKey(s.key), s.g.keys.ValueKey(s.key) + ":lease", begin + "t:" + s.tag, begin + "tags"} {
		if left := rdb.PTTL(ctx, key).Val(); left > 0 && left <= s.g.keys.IntentTTL() {
			rdb.Del(ctx, key)
		}
	}
}

func TestNoOrderOfLoadsReadersAndATransactionLeavesAStaleValueInRedis(t *testing.T) {
	t.Parallel()
	for _, onTag := range []bool{true, false} {
		for _, dies := range []bool{true, false} {
			expect.Beside(t, fmt.Sprintf("on a tag %t, dies %t", onTag, dies), func(t *testing.T) {
				noOrderLeavesAStaleValue(t, onTag, dies)
			})
		}
	}
}

func noOrderLeavesAStaleValue(t *testing.T, onTag, dies bool) {
	t.Helper()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{
		RedisTimeout: bearing, TTL: time.Hour, Jitter: -1, LeaseTTL: 10 * time.Second, LoadTimeout: time.Hour,
		Local: LocalConfig{MaxEntries: 1000, TTL: time.Hour},
	}).listening()
	g := f.guards[0]
	cache := newCaches(t, f, CacheConfig[string, string]{Name: "staged", Load: func(context.Context, string) (string, error) { return "new", nil }})[0]
	const readerSteps = 3
	play := func(n int, order []int) {
		known := n%2 == 0
		id := rand.Text()
		s := &intentStage{dies: dies, epochStage: epochStage{
			g: g, cache: cache, key: "staged:" + id, tag: rand.Text(), source: "old", steps: tagWriterSteps, evicts: epoch.OfTag("none"),
		}}
		s.loads[0].known, s.loads[1].known = known, !known
		if s.changes.Keys = []string{s.key}; onTag {
			s.changes = Changes{Tags: []string{s.tag}}
		}
		for _, who := range order {
			var err error
			switch who {
			case aWriter:
				err = s.transact(ctx)
			case load1, load2:
				err = s.load(ctx, &s.loads[who-load1])
			case aReader:
				err = s.get(ctx)
			}
			expect.Must(t, err)
		}
		expect.Must(t, s.check(ctx))
		expect.Equal(t, fmt.Sprint(order, " known ", known), s.wrong, "")
	}
	some(sparsely(201), []int{tagWriterSteps, epochLoadSteps, 0, readerSteps}, play)
	some(sparsely(8009), []int{tagWriterSteps, epochLoadSteps, epochLoadSteps}, play)
}
