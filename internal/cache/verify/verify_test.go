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

// counts is what a Verifier has counted, in the order of its fields.
func counts(v *Verifier) [4]uint64 {
	return [4]uint64{v.Matched.Load(), v.Stale.Load(), v.Superseded.Load(), v.Failed.Load()}
}

// comparison compares a value "old" with a source that has the value now, while the cache serves old still, or does not.
func comparison(now any, still bool) Comparison {
	return Comparison{
		Source:      func(context.Context) (any, bool, error) { return now, true, nil },
		IsServed:    func(value any) bool { return value == "old" },
		StillServed: func(context.Context) (bool, error) { return still, nil },
	}
}

func TestComparisonsCountWhatTheyFind(t *testing.T) {
	t.Parallel()
	failing, later, unread := comparison("new", true), comparison("new", true), comparison("new", true)
	failing.Source = func(context.Context) (any, bool, error) { return nil, true, errSource }
	later.Source = func(context.Context) (any, bool, error) { return nil, false, nil }
	unread.StillServed = func(context.Context) (bool, error) { return false, errSource }
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
				v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
				v.Compare(t.Context(), c.comparison)
				synctest.Wait()
				expect.Equal(t, "before the delay", counts(v), [4]uint64{})
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				expect.Equal(t, "afterwards", counts(v), c.want)
				expect.Equal(t, "running", v.Running.Load(), 0)
			})
		})
	}
}

func TestOnlyAFewComparisonsRunAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { v.Compare(t.Context(), comparison("old", true)) })
		}
		all.Wait()
		expect.Equal(t, "running", v.Running.Load(), AtOnce)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect.Equal(t, "compared", v.Matched.Load(), AtOnce)
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
				v := &Verifier{Delay: time.Minute, Life: lifecycle.New()}
				v.Compare(t.Context(), comparison("new", true))
				time.Sleep(after)
				begun := time.Now()
				v.Life.Close(errClosed, nil)
				expect.Equal(t, "Close took", time.Since(begun), 0)
				expect.Equal(t, "counted", counts(v), [4]uint64{})
				expect.Equal(t, "running", v.Running.Load(), 0)
				v.Compare(t.Context(), comparison("new", true))
				synctest.Wait()
				expect.Equal(t, "running in a cache that is closed", v.Running.Load(), 0)
			})
		})
	}
}
