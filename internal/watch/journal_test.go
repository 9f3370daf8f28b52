package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
	"github.com/cacheguard/go/internal/testing/expect"
)

// logged returns a Logger, and what it has written.
func logged() (logger *slog.Logger, text func() string) {
	var mu sync.Mutex
	var log bytes.Buffer
	return slog.New(slog.NewTextHandler(writer(func(line []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(line)
		}), nil)), func() string {
			mu.Lock()
			defer mu.Unlock()
			return log.String()
		}
}

type writer func([]byte) (int, error)

func (w writer) Write(line []byte) (int, error) { return w(line) }

// lines is how many lines of a log have the text.
func lines(log, text string) (found int) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found++
		}
	}
	return found
}

func TestATroubleThatComesAndGoesIsLoggedOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		e := episode{logger: logger, says: says{begun: "trouble", over: "all well"}}
		defer e.close()
		for range 50 {
			e.begin()
			time.Sleep(50 * time.Millisecond)
			e.end()
			time.Sleep(50 * time.Millisecond)
		}
		expect.Equal(t, "begun", lines(text(), "trouble"), 1)
		expect.Equal(t, "over", lines(text(), "all well"), 1)
		e.begin("key", "k")
		time.Sleep(time.Second - 1)
		expect.Equal(t, "too short", lines(text(), "trouble"), 1)
		time.Sleep(9*time.Second + 1)
		expect.Equal(t, "one that goes on, after a second", lines(text(), `trouble" key=k for=1s more=49`), 1)
		e.end("cost", 7)
		expect.Says(t, text(), "more=49", "lasted=10s cost=7", "key=k")
	})
}

func TestATroubleThatComesBackAgainAndAgainIsAHandfulOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		e := episode{logger: logger, says: says{begun: "trouble", over: "all well"}}
		defer e.close()
		began := time.Now()
		for time.Since(began) < time.Minute {
			e.begin()
			time.Sleep(1500 * time.Millisecond)
			e.end()
			time.Sleep(500 * time.Millisecond)
		}
		if n := lines(text(), "trouble"); n < 6 || n > 9 {
			t.Errorf("%d lines in a minute: %s", n, text())
		}
	})
}

func TestDurationsInAJSONLogAreText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var j Journal
		j.Open(Config{Logger: slog.New(slog.NewJSONHandler(&log, nil)), Pending: func() int { return 0 }})
		defer j.Close()
		j.breaker(true, errFrozen)
		time.Sleep(90 * time.Second)
		j.breaker(false, nil)
		j.Observe(t.Context(), Event{What: "slow_load", Key: "k", Attrs: []any{"took", 3 * time.Second}})
		j.Observe(t.Context(), Event{What: "still_runs", Key: "k", Attrs: []any{"after", 2 * time.Second}})
		j.Observe(t.Context(), Event{What: Stepped, Key: "k", Attrs: []any{"by", time.Minute}})
		for _, want := range []string{`"lasted":"1m30s"`, `"took":"3s"`, `"after":"2s"`, `"by":"1m0s"`} {
			expect.Equal(t, want, strings.Count(log.String(), want), 1)
		}
	})
}

func TestATroubleThatIsShortIsNotWorthALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		e := episode{logger: logger, says: says{begun: "trouble", over: "all well", delay: time.Second}}
		e.begin()
		time.Sleep(time.Second - 1)
		e.end()
		time.Sleep(time.Minute)
		expect.Equal(t, "log", text(), "")
		e.begin()
		e.begin()
		time.Sleep(2 * time.Second)
		e.end()
		e.end()
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 2)
		e.begin()
		e.close()
		time.Sleep(time.Minute)
		expect.Equal(t, "lines after the end", strings.Count(text(), "\n"), 2)
	})
}

func TestOfEventsOfAKindOneIsLoggedEveryTenSecondsWithHowManyThereWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var kind logging.Throttle
		log := func(key string) {
			kind.Log(context.Background(), logger, slog.LevelWarn, "cacheguard: event", key, "took", time.Second)
		}
		for _, key := range []string{"a", "b", "c"} {
			log(key)
		}
		expect.Equal(t, "logged", lines(text(), `level=WARN msg="cacheguard: event" key=a took=1s`), 1)
		time.Sleep(logging.Every - 1)
		log("d")
		expect.Equal(t, "lines", lines(text(), "event"), 1)
		time.Sleep(time.Nanosecond)
		log("e")
		expect.Equal(t, "logged later", lines(text(), "key=e took=1s more=3"), 1)
	})
}

func TestAnOutageOfAMinuteIsAHandfulOfLinesHoweverMuchFailsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		pending := 0
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return pending }})
		defer j.Close()
		j.RedisFailed("get", "price:1", errFrozen, true)
		j.Subscribed(true, nil)
		j.Subscribed(false, errFrozen)
		pending = 1
		j.PendingChanged("price:1")
		j.Slow(1, time.Second, time.Millisecond, "load first")
		j.breaker(true, errFrozen)
		for n := range 600 { // a minute
			if n == 50 {
				for range 100 {
					j.MaxLoads.Waits("max_loads", 64)
				}
			}
			for range 20 {
				j.RedisFailed("get", "price:1", errFrozen, true)
				j.Without.Add(1)
				j.PendingChanged("price:1")
				j.Observe(t.Context(), Event{What: "slow_load", Key: "price:1", Attrs: []any{"took", time.Minute}}) // the database suffers
			}
			time.Sleep(100 * time.Millisecond)
		}
		j.breaker(false, nil)
		j.Slow(0, 0, 0, "")
		time.Sleep(soon - 1)
		pending = 0
		j.PendingChanged("")
		j.Subscribed(true, nil)
		time.Sleep(2 * soon) // loads go on waiting
		for range 100 {
			j.MaxLoads.Waited()
		}
		time.Sleep(time.Minute)
		for _, once := range []string{
			"redis is slow", "redis is quick", "redis unavailable", "loads for itself error=i/o timeout", "requests_failed=12000", "loads_without_redis=12000", "keys_pending=1",
			"loads wait for MaxLoads", "loads_that_waited=100",
		} {
			expect.Equal(t, once, lines(strings.ReplaceAll(text(), `"`, ""), once), 1)
		}
		expect.Equal(t, "slow loads", lines(text(), "slow load"), 6)
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 6+6)
		if t.Failed() {
			t.Log(text())
		}
	})
}

// What a silent or slow Redis brings has its line, unless that of the Redis is there by then.
func TestWhatHasOneCauseHasOneLine(t *testing.T) {
	for name, cause := range map[string]func(*Journal, bool){
		"silent": func(j *Journal, on bool) { j.breaker(on, errFrozen) },
		"slow": func(j *Journal, on bool) {
			if on {
				j.Slow(1, time.Second, time.Millisecond, "load first")
			} else {
				j.Slow(0, 0, 0, "")
			}
		},
		"neither": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, text := logged()
				pending := 1
				var j Journal
				j.Open(Config{Logger: logger, Pending: func() int { return pending }, Tier: true, Background: func(f func()) bool { f(); return true }})
				defer j.Close()
				j.RedisFailed("invalidate", "k", errFrozen, true)
				j.PendingChanged("k")
				j.Subscribed(false, errFrozen)
				j.MaxLoads.Waits()
				j.Limiter.Waits()
				time.Sleep(soon / 2)
				if cause != nil {
					cause(&j, true)
				}
				time.Sleep(soon)
				j.Observe(t.Context(), Event{What: LeaseLost, Key: "k"})
				j.Observe(t.Context(), Event{What: Dropped})
				for range 2 * someMissed {
					time.Sleep(time.Second)
					j.Missed()
				}
				begun := []string{"redis failed", "invalidations pending", "cannot subscribe", "loads wait for MaxLoads", "loads wait for Config.Limiter", "lease lost", "local tier dropped", "missed again and again"}
				for _, line := range begun {
					expect.Equal(t, line, lines(text(), line), map[bool]int{true: 1, false: 0}[cause == nil])
				}
				if cause == nil {
					expect.Equal(t, "one that was not answered", lines(text(), `redis failed" key=k op=invalidate error="i/o timeout"`+"\n"), 1)
					return
				}
				expect.Equal(t, "lines while it lasts", strings.Count(text(), "\n"), 1)
				cause(&j, false)
				time.Sleep(2*max(soon, flapping) + 1) // the rest goes on
				for _, line := range begun[1:5] {
					expect.Equal(t, line+", after it", lines(text(), line), 1)
				}
				pending = 0
				j.PendingChanged("")
				expect.Equal(t, "over", lines(text(), "pending invalidations sent"), 1)
				expect.Equal(t, "what failed before it", lines(text(), "redis failed"), 0)
			})
		})
	}
}

// The password has changed: nothing works, and the reason has a line.
func TestWhatARefusalOfEverythingBringsHasNoLineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Timeout: time.Second, Pending: func() int { return 1 }, Untold: func() int { return 1 }})
		defer j.Close()
		j.RedisFailed("get", "k", refusedAs("WRONGPASS invalid"), false)
		j.PendingChanged("k")
		j.UntoldChanged("shop:invalidated")
		j.Subscribed(false, errFrozen)
		j.MaxLoads.Waits()
		for range 60 {
			j.RedisFailed("invalidate", "k", refusedAs("WRONGPASS invalid"), false)
			time.Sleep(time.Second)
		}
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 1)
		expect.Says(t, j.Troubles().Brought, "pending", "mute")
		time.Sleep(logging.Every + 2*(soon+time.Second)) // the rest goes on
		expect.Equal(t, "lines after it", strings.Count(text(), "\n"), 1+4)
	})
}

func TestMessagesThatAreRefusedAreNoPendingInvalidations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		untold := 2
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return 0 }, Untold: func() int { return untold }})
		defer j.Close()
		j.UntoldChanged("shop:invalidated")
		time.Sleep(time.Second)
		expect.Equal(t, "pending", j.Lasts("pending"), 0)
		expect.Equal(t, "mute", j.Lasts("mute"), time.Second)
		untold = 1 // another part's
		j.UntoldChanged("")
		expect.Equal(t, "mute with fewer", j.Lasts("mute"), time.Second)
		untold = 0
		j.UntoldChanged("")
		expect.Equal(t, "mute in the end", j.Lasts("mute"), 0)
		expect.Equal(t, "begun", lines(text(), "messages=2 channel=shop:invalidated"), 1)
		expect.Equal(t, "over", lines(text(), `refused messages sent" lasted=1s messages=2`), 1)
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 2)
	})
}

func TestEachEventIsCountedAndLoggedAsLoudAsItIs(t *testing.T) {
	t.Parallel()
	logger, text := logged()
	var j Journal
	j.Open(Config{Logger: logger, Pending: func() int { return 0 }, Background: func(f func()) bool { f(); return true }})
	defer j.Close()
	louder := map[What]string{Rejected: "", "uncompressed": "ERROR", "panicked": "ERROR", "observer": "ERROR", "dropped": "INFO", "overtaken": "INFO", Gated: "INFO"}
	for _, what := range allEvents() {
		want, differs := louder[what]
		if !differs {
			want = "WARN"
		}
		key, said := string(what[:1]), ofEvents[what].text
		j.Observe(t.Context(), Event{What: what, Key: key, Err: errors.New("why"), Attrs: []any{"attr", 7}})
		j.Observe(t.Context(), Event{What: what, Key: key})
		expect.Equal(t, string(what)+": times", j.Times(what), 2)
		shown := said
		if what == Gated {
			shown += ": why"
		}
		expect.Equal(t, string(what)+": as package admin shows it", j.Happened()[shown], 2)
		logged := 0
		if want != "" {
			logged = 1
		}
		line := "level=" + want + ` msg="cacheguard: ` + said + `" key=` + key + " attr=7 error=why\n"
		expect.Equal(t, string(what)+": as logged", lines(text(), line), logged)
		expect.Equal(t, string(what)+": logged", lines(text(), `cacheguard: `+said+`"`), logged)
	}
}

func TestTheEndOfATroubleSaysWhatItCost(t *testing.T) {
	t.Parallel()
	logger, text := logged()
	var count atomic.Int64
	e := episode{logger: logger, says: says{begun: "trouble", over: "all well", costs: []cost{{name: "failed", count: count.Load}}}}
	count.Add(5) // before
	e.begin()
	count.Add(3)
	e.begin() // it goes on
	count.Add(4)
	e.end("left", 1)
	expect.Equal(t, "what it cost, and what is left", lines(text(), " failed=7 left=1\n"), 1)
}

func TestTheLineOfASlowRedisSaysWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		loads time.Duration
		says  string
	}{
		{0, "redis=30ms parts=2 "}, // what loads take is not known before one has ended
		{300 * time.Microsecond, "redis=30ms loads=300µs parts=2 "},
		{20*time.Millisecond + 1, "redis=30ms loads=20ms parts=2 "},
	} {
		logger, log := logged()
		var j Journal
		j.Open(Config{Logger: logger})
		j.Slow(2, 30*time.Millisecond, c.loads, "load first")
		j.Close()
		expect.Says(t, log(), c.says)
	}
}

var errFrozen = errors.New("i/o timeout")

var errFull = refusedAs("OOM command not allowed")

type refusedAs string

func (r refusedAs) Error() string { return string(r) }
func (refusedAs) RedisError()     {}

func TestARefusalHasALineWhenItBeginsAndOneWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger})
		defer j.Close()
		j.RedisDid("acquire")
		for range 60 { // of a cluster, one node is full
			j.RedisFailed("acquire", "price:1", errFull, false)
			j.RedisFailed("notice", "", errFull, false)
			time.Sleep(time.Second)
			j.RedisDid("acquire")
		}
		expect.Equal(t, "begun", lines(text(), `level=WARN msg="cacheguard: redis failed" key=price:1 error="OOM command not allowed" op=acquire`), 1)
		expect.Equal(t, "one cause", lines(text(), "redis failed"), 1)
		expect.Equal(t, "over, while it is refused now and then", lines(text(), "refuses no more"), 0)
		time.Sleep(logging.Every - time.Second)
		j.RedisDid("get")
		expect.Equal(t, "over, though another operation succeeded", lines(text(), "refuses no more"), 0)
		j.RedisDid("acquire")
		j.RedisDid("acquire")
		expect.Equal(t, "over", lines(text(), `level=INFO msg="cacheguard: redis refuses no more" lasted=59s op=acquire quiet=10s`), 1)
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 2)
		for _, op := range []string{"get", "acquire", "get"} {
			j.RedisFailed(op, "", refusedAs("NOPERM User app has no permissions"), false)
		}
		expect.Equal(t, "what each operation may not", lines(text(), "NOPERM"), 2)
		expect.Equal(t, "what that brings", len(j.Troubles().Brought), 0)
	})
}

// Nobody tries an operation for a while: then nobody sees when it is no longer refused.
func TestATroubleLastsFromItsFirstRefusalToItsLastAndAnotherIsAnother(t *testing.T) {
	const full, wrong = "OOM command not allowed", "WRONGPASS invalid username-password pair"
	for name, c := range map[string]struct {
		pause time.Duration
		then  string
		lines int // of begins
	}{
		"a moment later":                    {time.Second, full, 1},
		"seldom tried":                      {30 * time.Second, full, 1},
		"another error":                     {time.Second, wrong, 2},
		"another error after a while":       {15 * time.Second, wrong, 2},
		"the same, two minutes after":       {2 * time.Minute, full, 2},
		"another error two minutes after":   {2 * time.Minute, wrong, 2},
		"seen to be over a long time after": {2 * time.Minute, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, text := logged()
				var j Journal
				j.Open(Config{Logger: logger})
				defer j.Close()
				for range 16 {
					j.RedisFailed("acquire", "price:1", errFull, false)
					time.Sleep(time.Second)
				}
				time.Sleep(c.pause)
				if c.then != "" {
					j.RedisFailed("acquire", "price:1", refusedAs(c.then), false)
				}
				time.Sleep(time.Minute)
				j.RedisDid("acquire")
				expect.Equal(t, "begun", lines(text(), "redis failed"), c.lines)
				again, ends := c.lines-1, 1
				if c.then == wrong { // each has its own
					again, ends = 0, 2
				}
				expect.Equal(t, "over", lines(text(), "refuses no more"), ends)
				expect.Equal(t, "over, and seen when it was refused again", lines(text(), `redis refused" lasted=15s op=acquire quiet=`), again)
				if c.then != full {
					expect.Equal(t, "the first", lines(text(), `refuses no more" lasted=15s op=acquire quiet=`), 1)
				}
			})
		})
	}
}

func TestAGuardWithoutALocalTierSaysWhoseTiersItCannotTell(t *testing.T) {
	for tier, says := range map[bool]string{true: "messages refused, local tiers may keep", false: "messages refused, other instances with a local tier, if there are any, may keep"} {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Tier: tier, Untold: func() int { return 1 }})
		j.UntoldChanged("shop:invalidated")
		j.Close()
		expect.Equal(t, "line", lines(text(), says), 1)
	}
}

// A Redis that is frozen is first slow or unavailable, as chance has it.
func TestWhatATroubleCostDoesNotDependOnWhichCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logged()
		var j Journal
		j.Open(Config{Logger: logger, Pending: func() int { return 0 }})
		defer j.Close()
		loads := func() {
			for range 10 {
				j.LoadsBeside()
				j.Without.Add(1)
			}
		}
		j.Slow(1, 0, 0, "")
		j.breaker(true, errFrozen)
		loads()
		j.breaker(false, nil)
		loads()
		j.Slow(0, 0, 0, "")
		expect.Equal(t, "unavailable", lines(text(), "loads_without_redis=20"), 1)
		expect.Equal(t, "slow", lines(text(), "loads_beside_redis=40"), 1)
	})
}
