package cdc

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// oldFor is a sample whose value in the cache is old at first.
func oldFor(d time.Duration) sample {
	began := time.Now()
	return sample{
		table: "products", key: "product:1", committed: began,
		truth: func(context.Context) answer { return answer{value: "new"} },
		served: func(context.Context) answer {
			if time.Since(began) < d {
				return answer{value: "old"}
			}
			return answer{value: "new"}
		},
		inspect: func(context.Context, string) (cacheguard.Inspection, error) {
			return cacheguard.Inspection{State: cacheguard.EntryFresh, Age: time.Hour, TagVersions: []string{"5f0c"}}, nil
		},
	}
}

// reported runs a Report on samples, for two minutes.
func reported(t *testing.T, samples ...func() sample) (c Consistency) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := NewReport(ReportConfig{})
		expect.ErrorIs(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for _, s := range samples {
			r.take(s())
		}
		expect.ErrorIs(t, r.Run(ctx), context.DeadlineExceeded)
		c = r.Consistency()
	})
	return c
}

func TestAReportSaysHowLongValuesWereOldAndHowManyAndWhy(t *testing.T) {
	t.Parallel()
	c := reported(t, func() sample { return oldFor(0) }, func() sample { return oldFor(5 * time.Second) }, func() sample { return oldFor(time.Hour) })
	expect.Equal(t, "rows", c.Rows, 3)
	expect.Equal(t, "reads after a second", c.After[0], Looks{time.Second, 3, 2})
	expect.Equal(t, "reads after ten", c.After[1], Looks{10 * time.Second, 3, 1})
	expect.Equal(t, "reads after sixty", c.After[2], Looks{time.Minute, 3, 1})
	expect.Equal(t, "old of a million", int(c.After[1].PerMillion()), 333_333)
	expect.Equal(t, "nobody has read", Looks{}.PerMillion(), 0)
	if c.Longest < 5*time.Second || c.Longest > 10*time.Second || c.P99 != c.Longest || c.P50 != c.Longest {
		t.Errorf("times until consistent: p50 %v, p99 %v, longest %v", c.P50, c.P99, c.Longest)
	}
	expect.Equal(t, "old values", len(c.Old), 4)
	last := c.Old[3]
	expect.Equal(t, "the key", last.Table+" "+last.Key+" "+last.After.String(), "products product:1 1m0s")
	expect.Equal(t, "why", last.Why, "it was stored 59m0s before the commit, and not invalidated: does Changed name another key?")
	expect.Equal(t, "epochs", strings.Join(last.Epochs, " "), "5f0c")
}

func TestWhatCannotBeReadIsCounted(t *testing.T) {
	t.Parallel()
	c := reported(t, func() sample {
		s := oldFor(0)
		s.truth = func(context.Context) answer { return answer{err: errors.New("down")} }
		return s
	})
	expect.Equal(t, "failed", c.Failed, 3)
	expect.Equal(t, "reads", c.After[0].Reads, 0)
}

func TestAThingThatIsGoneIsNotOld(t *testing.T) {
	t.Parallel()
	gone, other := answer{err: sql.ErrNoRows}, errors.New("mine")
	expect.Equal(t, "both say so", gone.equals(answer{err: cacheguard.ErrNotFound}), true)
	expect.Equal(t, "both say so, in the words of the service", answer{err: other}.equals(answer{err: errors.Join(other)}), true)
	expect.Equal(t, "the cache has it", answer{value: 1}.equals(gone), false)
	expect.Equal(t, "the cache fails", answer{err: other}.equals(gone), false)
}

func TestADatabaseThatMovesOnIsAskedAgain(t *testing.T) {
	t.Parallel()
	truths := []string{"one", "two", "two"}
	s := sample{
		served: func(context.Context) answer { return answer{value: "two"} },
		truth: func(context.Context) answer {
			v := truths[0]
			truths = truths[1:]
			return answer{value: v}
		},
	}
	same, err := s.same(t.Context())
	expect.ErrorIs(t, err)
	expect.Equal(t, "the same", same, true)
}

func TestTheReasonOfAnOldValueIsWhatItsEntrySays(t *testing.T) {
	t.Parallel()
	fresh := cacheguard.EntryFresh
	for want, i := range map[string]cacheguard.Inspection{
		"stored 50s before the commit":  {State: fresh, Age: time.Minute},
		"began 1s before the commit":    {State: fresh, Age: 9 * time.Second, LoadTook: 2 * time.Second},
		"a replica that is behind":      {State: cacheguard.EntryAbsent, Age: time.Second, LoadTook: time.Second},
		"in the memory of this":         {State: cacheguard.EntryRevoked, Here: cacheguard.Here{InTier: true}},
		"nothing valid by now (missing": {State: cacheguard.EntryMissing},
	} {
		if got := why(&i, 10*time.Second); !strings.Contains(got, want) {
			t.Errorf("%s, want one with %q", got, want)
		}
	}
}

func TestReportedLooksAtOneOfSomeRows(t *testing.T) {
	t.Parallel()
	guard, err := cacheguard.New(redistest.Start(t).Client(t), cacheguard.Config{})
	expect.ErrorIs(t, err)
	defer guard.Close()
	load := func(context.Context, int64) (string, error) { return "one", nil }
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{Name: "product", Load: load})
	expect.ErrorIs(t, err)
	_, err = NewReport(ReportConfig{OneIn: -1})
	if err == nil || !strings.Contains(err.Error(), "OneIn") {
		t.Errorf("error %v", err)
	}
	r, err := NewReport(ReportConfig{OneIn: 10})
	expect.ErrorIs(t, err)
	key := func(r Row) (int64, error) { return r.Int64("id") }
	table := Reported(r, "products", products, key, load)
	row := NewRow([]string{"id"}, func(int) (any, error) { return int64(7), nil })
	for range 1015 {
		expect.Equal(t, "keys", len(table.Changed(Change{Op: Delete, Old: row, Committed: time.Now()}).Keys), 1)
	}
	expect.Equal(t, "samples", len(r.samples), 100)
	expect.Equal(t, "skipped, as Run does not run", r.Consistency().Skipped, 1)
	s := <-r.samples
	same, err := s.same(t.Context())
	expect.ErrorIs(t, err)
	expect.Equal(t, "the same", same, true)
	expect.Equal(t, "key", s.key, "product:7")
	expect.Equal(t, "without a report", Reported(nil, "products", products, key, load).Changed == nil, true)
	var none *Report
	expect.Equal(t, "rows of no report", none.Consistency().Rows, 0)
}
