package watch

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

var errLocked = errors.New("relation products is locked")

// failingLoads runs the test with what is known of the loads of product.
func failingLoads(t *testing.T, test func(f *Kind, load func(n int, err error), text func() string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return 0 }})
		defer j.Close()
		f := j.Kind("product")
		test(f, func(n int, err error) {
			for range n {
				said := ""
				if err != nil {
					said = "redacted"
				}
				f.Loaded(err, said)
			}
		}, text)
	})
}

func TestLoadsThatFailAreToldOnceAndSoIsTheirEnd(t *testing.T) {
	failingLoads(t, func(f *Kind, load func(int, error), text func() string) {
		load(4, nil)
		for range 12 {
			load(3, errLocked)
			time.Sleep(time.Second)
		}
		now := f.Now()
		expect.Equal(t, "for", now.For, 11*time.Second) // not before the second second
		expect.Equal(t, "loads", now.Loads, 4+12*3)
		expect.Equal(t, "failed", now.Failed, 12*3)
		expect.Equal(t, "said", now.Last, "redacted")
		expect.Equal(t, "begun", lines(text(), `level=WARN msg="cacheguard: loads fail" kind=product failed=4 loads=8 error="relation products is locked"`), 1)
		for range 30 {
			load(1, nil)
			time.Sleep(time.Second)
		}
		expect.Equal(t, "for, in the end", f.Now().For, 0)
		expect.Equal(t, "over", lines(text(), `level=INFO msg="cacheguard: few loads fail, or none" lasted=`), 1)
		expect.Equal(t, "what failed", lines(text(), " failed=33 kind=product\n"), 1)
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 2)
	})
}

func TestFewFailuresAndThoseOfAMomentAreNoTrouble(t *testing.T) {
	for name, run := range map[string]func(load func(int, error)){
		"one":             func(load func(int, error)) { load(1, errLocked) },
		"a call for many": func(load func(int, error)) { load(1000, errLocked) },
		"two, at times":   func(load func(int, error)) { load(2, errLocked); time.Sleep(time.Minute); load(2, errLocked) },
		"less than a quarter": func(load func(int, error)) {
			load(78, nil)
			load(24, errLocked)
			time.Sleep(2 * time.Second)
			load(1, errLocked)
		},
		"one in a minute": func(load func(int, error)) {
			for range 10 {
				load(1, errLocked)
				time.Sleep(time.Minute)
			}
		},
		"nothing but well": func(load func(int, error)) { load(1000, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			failingLoads(t, func(f *Kind, load func(int, error), text func() string) {
				run(load)
				expect.Equal(t, "for", f.Now().For, 0)
				expect.Equal(t, "log", text(), "")
			})
		})
	}
}

func TestLoadsOfWhichSomeFailNeitherBeginATroubleNorEndIt(t *testing.T) {
	failingLoads(t, func(f *Kind, load func(int, error), text func() string) {
		some := func() {
			for range 100 {
				load(17, nil)
				load(3, errLocked)
				time.Sleep(time.Second)
			}
		}
		some()
		expect.Equal(t, "before", text(), "")
		for range 20 {
			load(10, errLocked)
			time.Sleep(time.Second)
		}
		some()
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 1)
		expect.Equal(t, "it lasts", f.Now().For > 100*time.Second, true)
	})
}

func TestATroubleEndsWhenNobodyLoads(t *testing.T) {
	failingLoads(t, func(_ *Kind, load func(int, error), text func() string) {
		for range 4 {
			load(1, errLocked)
			time.Sleep(time.Second)
		}
		expect.Equal(t, "begun", lines(text(), "loads fail"), 1)
		time.Sleep(2*failingSpan - 2*time.Second)
		expect.Equal(t, "not over yet", lines(text(), "few loads fail"), 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect.Equal(t, "over", lines(text(), "few loads fail"), 1)
	})
}

func TestATroubleDoesNotEndWhileALoaderHangs(t *testing.T) {
	failingLoads(t, func(f *Kind, load func(int, error), text func() string) {
		for range 4 {
			load(1, errLocked)
			time.Sleep(time.Second)
		}
		f.Running.Add(1)
		time.Sleep(10 * failingSpan)
		expect.Equal(t, "not over", lines(text(), "few loads fail"), 0)
		now := f.Now()
		expect.Equal(t, "failed, as is known", now.Failed == 4 && now.Loads == 4 && now.For > 10*failingSpan, true)
		f.Running.Add(-1) // nobody looks
		time.Sleep(2 * failingSpan)
		synctest.Wait()
		expect.Equal(t, "over", lines(text(), "few loads fail"), 1)
	})
}

func TestAFailureOfAnotherInstanceCountsOnce(t *testing.T) {
	failingLoads(t, func(f *Kind, load func(int, error), text func() string) {
		for range 3 {
			load(1, errLocked)
			for range 100 {
				f.Heard(errLocked, "redacted", 5*time.Second) // of it
				time.Sleep(50 * time.Millisecond)
			}
		}
		expect.Equal(t, "of its own", lines(text(), "failed=3 loads=3"), 1)
		time.Sleep(time.Minute)
		for range 300 {
			f.Heard(errLocked, "redacted", 5*time.Second)
			time.Sleep(50 * time.Millisecond)
		}
		expect.Equal(t, "of others", lines(text(), "loads fail\""), 2)
		expect.Equal(t, "said", f.Now().Last, "redacted")
	})
}

func TestMessagesThatAreMissedAgainAndAgainAreATroubleAndOnceOrTwiceIsNone(t *testing.T) {
	for name, run := range map[string]struct {
		tier   bool
		miss   func(j *Journal)
		reason string
	}{
		"tier dropped": {true, func(j *Journal) { j.Missed() }, errMissed.Error()},
		"subscription replaced": {false, func(j *Journal) {
			j.Subscribed(false, errLocked)
			j.Subscribed(false, errLocked) // the next attempt, of the same loss
			j.Subscribed(true, nil)
		}, errLocked.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, text := logged()
				var j Journal
				j.Open(Config{Logger: logger, Tier: run.tier, Pending: func() int { return 0 }, Background: func(f func()) bool { f(); return true }})
				defer j.Close()
				for range 5 { // failovers
					for range 2 {
						run.miss(&j)
						time.Sleep(time.Second)
					}
					time.Sleep(time.Minute)
				}
				expect.Equal(t, "lasts, of failovers", j.Lasts("missed"), 0)
				expect.Equal(t, "of failovers", lines(text(), "again and again"), 0)
				for range 100 {
					run.miss(&j)
					time.Sleep(300 * time.Millisecond)
				}
				expect.Equal(t, "again and again", j.MissesAgain() && j.Lasts("missed") > 20*time.Second, true)
				expect.Equal(t, "begun", lines(text(), `level=WARN msg="cacheguard: messages may have been missed again and again,`), 1)
				expect.Equal(t, "why", lines(text(), `times=5 error="`+run.reason), 1)
				time.Sleep(2 * failingSpan)
				synctest.Wait()
				expect.Equal(t, "over", lines(text(), `level=INFO msg="cacheguard: messages arrive steadily again" lasted=`), 1)
				expect.Equal(t, "lasts, in the end", j.MissesAgain(), false)
			})
		})
	}
}
