package otel

import (
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestFeedsAreReadFromTheirStats(t *testing.T) {
	t.Parallel()
	o := observe(t, 0, Config{})
	o.telemetry.Feed("log", func() cdc.Stats { return cdc.Stats{} })
	o.telemetry.Feed("log", func() cdc.Stats {
		return cdc.Stats{
			Reading: true, Behind: 2 * time.Second, BehindBytes: 3, Retained: 4, Rows: 5, Invalidations: 6, Whole: 7, Reconnects: 8, Err: errors.New("trouble"),
		}
	})
	counts := o.counts()
	for name, want := range map[string]int64{
		"reading": 1, "failing": 1, "behind": 2, "behind.bytes": 3, "retained.bytes": 4, "rows": 5, "invalidations": 6, "whole": 7, "reconnects": 8,
	} {
		expect.Equal(t, name, counts["cacheguard.feed."+name+"{cacheguard.feed=log}"], want)
	}
	expect.ErrorIs(t, o.telemetry.Close())
	expect.Equal(t, "metrics after Close", len(o.counts()), 0)
}
