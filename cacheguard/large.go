package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/script"
)

const (
	entryOverhead = 80 << 10 // more than an entry has beside its payload
	largeHead     = 1 << 10  // what is remembered of a value that is too large
)

var errLargeEntry = errors.New("it is larger than an entry of MaxValueBytes")

// largestEntry is how many bytes an entry has at most. Values of other sizes were not stored by a Guard with this Config.
func (c *Config) largestEntry() int {
	if c.MaxValueBytes == off {
		return math.MaxInt
	}
	return c.MaxValueBytes + entryOverhead
}

// unfit is what a rebuild remembers of a value that it replaces: not all of one that is too large.
func (c *Config) unfit(raw []byte) []byte {
	if len(raw) > c.largestEntry() {
		return bytes.Clone(raw[:largeHead])
	}
	return raw
}

// readFailed is called when the value at the key could not be read. If it took too long, because the value is larger than any entry, the
// next read would, too: so it is removed, in the background, one at a time.
func (g *Guard) readFailed(valueKey string, err error) {
	if !errors.Is(err, link.ErrTimeout) || g.cfg.MaxValueBytes == off || !g.dropping.CompareAndSwap(false, true) {
		return
	}
	begun := g.life.Try(func() { // stop: RedisTimeout
		defer g.dropping.Store(false)
		_, _ = lifecycle.Bounded(context.Background(), g.life, g.cfg.RedisTimeout, func(ctx context.Context) (any, error) {
			return script.RunAll(ctx, g.rdb, []*script.Call{g.keys.DropLarge(valueKey, g.cfg.largestEntry())})[0].Result()
		}, nil) // the next read that fails tries again
	})
	if !begun {
		g.dropping.Store(false)
	}
}
