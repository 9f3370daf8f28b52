package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/verify"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestVerifyTellsHowHitsCompareWithTheSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   Config
		write func(*fleet, *row)
		want  func(Verified) uint64
	}{
		"the same":        {Config{}, func(*fleet, *row) {}, func(v Verified) uint64 { return v.Matched }},
		"the same, local": {withLocal, func(*fleet, *row) {}, func(v Verified) uint64 { return v.Matched }},
		"written without a word": {Config{}, func(_ *fleet, db *row) { db.value.Store("new") },
			func(v Verified) uint64 { return v.Stale }},
		"written and invalidated": {Config{}, func(f *fleet, db *row) {
			db.value.Store("new")
			mustInvalidate(f.t, f.guards[0], "k")
		}, func(v Verified) uint64 { return v.Superseded }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			cfg.Verify = VerifyConfig{OneIn: 1, Delay: 50 * time.Millisecond}
			f := newFleet(t, standalone(t), 1, cfg).listening()
			g, db, written := f.guards[0], newRow("old"), make(chan struct{})
			mustGet(t, g, "k", db.load)
			mustGet(t, g, "k", func(ctx context.Context) (string, error) { // a hit: only the comparison loads
				<-written
				return db.load(ctx)
			})
			c.write(f, db)
			close(written)
			redistest.Await(t, "it was compared", func() bool { return g.Verified() != Verified{} })
			expect.Equal(t, "counted", c.want(g.Verified()), 1)
		})
	}
}

// The tier has missed the notice.
func TestVerifyFindsWhatOnlyTheLocalTierStillServes(t *testing.T) {
	t.Parallel()
	cfg := withLocal
	cfg.Verify = VerifyConfig{OneIn: 1, Delay: 50 * time.Millisecond}
	f := newFleet(t, standalone(t), 1, cfg)
	g, db := f.guards[0], newRow("old")
	f.keptBy(0, "k", "old")
	db.value.Store("new")
	f.redis.Del(context.Background(), f.value("k"))
	redistest.Await(t, "it was found", func() bool {
		expect.Equal(t, "served", mustGet(t, g, "k", db.load), "old")
		return g.Verified().Stale > 0
	})
}

func TestVerifyComparesHitsOfGetManyKeyByKey(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"redis": {}, "local": withLocal} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Verify = VerifyConfig{OneIn: 1, Delay: time.Millisecond}
			f := newFleet(t, standalone(t), 1, cfg).listening()
			g, db := f.guards[0], openShelf()
			many := func() {
				if _, err := GetMany(context.Background(), g, []string{"a", "b"}, db.load); err != nil {
					t.Error(err)
				}
			}
			many()
			f.stored()
			if cfg.Local.on() {
				f.keptBy(0, "a", "v:a")
				f.keptBy(0, "b", "v:b")
			}
			redistest.Await(t, "no comparison is under way", func() bool { return g.verifier.Running.Load() == 0 })
			before := g.Verified()
			many()
			redistest.Await(t, "both were compared", func() bool { return g.Verified().Matched == before.Matched+2 })
		})
	}
}

func TestVerifyCountsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Verify: VerifyConfig{OneIn: 1, Delay: time.Millisecond}})
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	mustGet(t, g, "k", func(context.Context) (string, error) { return "", errors.New("no") })
	redistest.Await(t, "it was compared", func() bool { return g.Verified().Failed == 1 })
}

func TestCloseDoesNotWaitForVerifications(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Verify: VerifyConfig{OneIn: 1, Delay: time.Hour}})
	for range 10 {
		mustGet(t, f.guards[0], "k", returns("v"))
	}
	expect.Equal(t, "running", f.guards[0].verifier.Running.Load(), verify.AtOnce)
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
}
