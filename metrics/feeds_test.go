package metrics

import "testing"

func TestFeedsAreReadFromTheirStats(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	for name, want := range map[string]float64{
		"reading": 1, "failing": 1, "behind_seconds": 2, "behind_bytes": 3, "retained_bytes": 4,
		"rows_total": 5, "invalidations_total": 6, "whole_total": 7, "reconnects_total": 8,
	} {
		e.want("cacheguard_feed_"+name+"{feed=log}", want)
	}
}
