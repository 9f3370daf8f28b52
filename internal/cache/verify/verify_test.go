package verify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
)

var (
	errClosed = errors.New("closed")
	errSource = errors.New("the source is down")
)

// counts is what comparisons have found, in the order of its fields.
func counts(v *Found) [4]uint64 {
	return [4]uint64{v.Matched.Load(), v.Stale.Load(), v.Superseded.Load(), v.Failed.Load()}
}

// comparing compares a value "old" with a source, while the cache serves old still, or does not.
type comparing struct {
	now                 any
	still               bool
	busy                bool
	sourceErr, cacheErr error
}

func (c comparing) Source(context.Context) (any, bool, error)   { return c.now, !c.busy, c.sourceErr }
func (c comparing) IsServed(value any) bool                     { return value == "old" }
func (c comparing) IsStillServed(context.Context) (bool, error) { return c.still, c.cacheErr }

func comparison(now any, still bool) comparing { return comparing{now: now, still: still} }

func TestComparisonsCountWhatTheyFind(t *testing.T) {
	t.Parallel()
	failing, later, unread := comparison("new", true), comparison("new", true), comparison("new", true)
	failing.sourceErr, later.busy, unread.cacheErr = errSource, true, errSource
	for name, c := range map[string]struct {
		comparison Comparison
		want       [4]uint64
	}{
		"the source has it":                      {comparison("old", true), [4]uint64{1, 0, 0, 0}},
		"the source has another, and it stays":   {comparison("new", true), [4]uint64{0, 1, 0, 0}},
		"the source has none, and it stays":      {comparison(nil, true), [4]uint64{0, 1, 0, 0}},
		"the source has another, and it is gone": {comparison("new", false), [4]uint64{0, 0, 1, 0}},
		"the source fails":                       {failing, [4]uint64{0, 0, 0, 1}},
		"the cache cannot be read":               {unread, [4]uint64{0, 0, 0, 1}},
		"the source may not be read now":         {later, [4]uint64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var found Found
				v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
				v.Compare(t.Context(), c.comparison, &found)
				synctest.Wait()
				expect.Equal(t, "before the delay", counts(&found), [4]uint64{})
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				expect.Equal(t, "afterwards", counts(&found), c.want)
				expect.Equal(t, "running", v.Running.Load(), 0)
			})
		})
	}
}

func TestOnlyAFewComparisonsRunAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var found Found
		v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { v.Compare(t.Context(), comparison("old", true), &found) })
		}
		all.Wait()
		expect.Equal(t, "running", v.Running.Load(), AtOnce)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect.Equal(t, "compared", found.Matched.Load(), AtOnce)
		expect.Equal(t, "running afterwards", v.Running.Load(), 0)
	})
}

// In each pause, and before the first.
func TestComparisonsEndWithTheCache(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"before the source is read": 30 * time.Second, "before the cache is": 90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var found Found
				v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
				v.Compare(t.Context(), comparison("new", true), &found)
				time.Sleep(after)
				begun := time.Now()
				v.Life.Close(errClosed, nil)
				expect.Equal(t, "Close took", time.Since(begun), 0)
				expect.Equal(t, "counted", counts(&found), [4]uint64{})
				expect.Equal(t, "running", v.Running.Load(), 0)
				v.Compare(t.Context(), comparison("new", true), &found)
				synctest.Wait()
				expect.Equal(t, "running in a cache that is closed", v.Running.Load(), 0)
			})
		})
	}
}
