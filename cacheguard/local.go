package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/tier"
)

// LocalConfig describes a tier of decoded values in this process, in front of Redis. Set MaxBytes or MaxEntries to switch
// it on; setting both is an error. It is not available on a Ring.
//
// A Get that the tier answers costs no round trip. The price is a weaker promise: an Invalidate on another instance reaches this tier
// by a message. Until the message arrives, Get may return the older value, but never for longer than TTL. Normally that is the time
// of one message through Redis, but up to 5 seconds when the connection hangs unnoticed. On the instance that called Invalidate there
// is no such delay.
//
// While the subscription to the messages is down, or a message is known to be missing, Get does not use the tier, except for
// stale values (StaleFor) when Redis does not answer either. When the subscription is back, the tier starts empty.
//
// The tier only keeps entries that a Guard with a tier, StaleFor or EarlyRefresh stored: others do not say how long they are
// fresh.
type LocalConfig struct {
	// MaxBytes bounds the tier by the size of its keys and encoded values, with 256 bytes added for each. Decoded values may
	// take more than that.
	MaxBytes int

	// MaxEntries bounds the tier by the number of its entries.
	MaxEntries int

	// TTL is how long a value stays in the tier, at most, after it was read from Redis. At least a millisecond. Default: 5
	// seconds.
	TTL time.Duration

	// HotKeys limits the tier to that many keys: those that this process asked for most in the last seconds, if it asked for
	// them about thirty times or more. Default: 0, all keys.
	HotKeys int
}

const defaultLocalTTL = 5 * time.Second

func (c *LocalConfig) on() bool { return c.MaxBytes > 0 || c.MaxEntries > 0 }

func (c *LocalConfig) check(bad func(field, format string, args ...any)) {
	switch {
	case c.MaxBytes < 0:
		bad("Local.MaxBytes", "%d is negative", c.MaxBytes)
	case c.MaxEntries < 0:
		bad("Local.MaxEntries", "%d is negative", c.MaxEntries)
	case c.MaxBytes > 0 && c.MaxEntries > 0:
		bad("Local", "MaxBytes and MaxEntries are both set")
	case !c.on() && (c.TTL != 0 || c.HotKeys != 0):
		bad("Local", "set MaxBytes or MaxEntries, or nothing")
	}
	if c.TTL < 0 || c.TTL > 0 && c.TTL < time.Millisecond {
		bad("Local.TTL", "%v is shorter than a millisecond (is the unit missing?)", c.TTL)
	}
	if c.HotKeys < 0 {
		bad("Local.HotKeys", "%d is negative", c.HotKeys)
	}
}

// checkLocal refuses a client whose scripts' messages do not reach every subscriber.
func checkLocal(rdb Redis, cfg *Config) error {
	if _, ring := rdb.(*redis.Ring); ring && cfg.Local.on() {
		return errors.New("Config.Local: rdb is a Ring, on which messages of invalidations do not reach every instance")
	}
	return nil
}

// openLocal makes the Guard's tier, if it has one.
func (g *Guard) openLocal() (err error) {
	c := &g.cfg.Local
	if !c.on() {
		return nil
	}
	limits := tier.Limits{MaxBytes: c.MaxBytes, MaxEntries: c.MaxEntries, TTL: c.TTL, HotKeys: c.HotKeys, Clock: g.cfg.clock}
	if g.local, err = tier.Open(limits, g.inbox, g.notices, g.journal.Dropped); err != nil {
		return fmt.Errorf("Config.Local: %w", err)
	}
	g.epochs.Tier = g.local.Tier
	return nil
}

// repeat has the numbers of notices repeated that are made from now on.
func (g *Guard) repeat() {
	g.notices.Begin = func() {
		g.life.Try(func() { g.notices.Repeat(g.life.Ending, g.say) }) // stop: the end of the Guard, or its last message
	}
}

// say sends a message to local tiers. If Redis does not answer, their subscriptions end, or they hear a later message.
func (g *Guard) say(part int, message string) {
	if g.health.Breaker(part).IsOpen() {
		return
	}
	call := g.keys.Say(g.health.Key(part), message)
	_, _ = bounded(context.Background(), g, func(ctx context.Context) (any, error) {
		return nil, call.Run(ctx, g.rdb).Err()
	})
}

// fromItem returns an item of the tier as an answer to calls of the policy. As in Redis, an entry of a Cache is none of the function Get,
// and the other way round.
func fromItem[V any](item *tier.Item, p *policy, how Outcome) (f found[V], ok bool) {
	if item == nil || item.Named != (p.kind != nil) {
		return f, false
	}
	if item.Value != nil {
		if f.value, ok = item.Value.(*V); !ok {
			return f, false // another type
		}
	}
	f.how = how
	return f, true
}

// keep puts what was read into the tier. It skips an entry that does not say how long it is fresh, as Guards without a
// tier write them: that may be gone from Redis the next moment.
func keep[V any](g *Guard, key string, p *policy, mark tier.Mark, read *link.Read, r *readResult[V], under []tier.NameMark) {
	if g.local == nil || r.entry.Fresh == 0 || r.state != fresh && r.state != ageing {
		return
	}
	left := r.entry.Fresh - max(g.serverClocks.Age(key, r.entry.Written), 0) // below 0 if the clocks disagree
	size := max(len(read.Raw), len(r.entry.Payload))                         // a compressed entry is kept decompressed
	if r.value == nil {
		g.local.Keep(key, mark, &tier.Item{Named: p.kind != nil}, nil, size, left, left, under...)
		return
	}
	k := &kept[V]{Item: tier.Item{Named: p.kind != nil}, value: *r.value}
	g.local.Keep(key, mark, &k.Item, &k.value, size, left, left+p.staleFor, under...)
}

// kept is an item of the tier, and beside it its value.
type kept[V any] struct {
	tier.Item
	value V
}
