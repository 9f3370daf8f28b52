package main

import (
	"testing"
	"time"
)

func TestWhatIsWrittenPastTheCacheStaysOldWithoutAFeed(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{modeHand, modeGuard} {
		l := newLab(t, settings{Mode: m})
		l.writePast()
		awaitFact(t, "it is written", func() bool { return l.said("wrote version 1 past the cache") })
		a, err := l.call(0)
		must(t, err)
		if a.product.Version != 0 {
			t.Errorf("%s: version %d", m, a.product.Version)
		}
		if n := l.state(t.Context(), time.Now()).Outdated; n != 1 {
			t.Errorf("%s: %d outdated answers", m, n)
		}
		must(t, l.change(t.Context(), settings{Mode: m, TTL: 3600, Feed: true})) // with the same instances
		l.db.latency.Store(0)
		l.writePast()
		awaitFact(t, "the feed has invalidated it", func() bool { return l.said("invalidated version 1") })
		a, err = l.call(0)
		must(t, err)
		if a.product.Version != 2 {
			t.Errorf("%s: version %d with a feed", m, a.product.Version)
		}
	}
}
