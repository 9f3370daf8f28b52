package troubles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestASlowLoaderIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "A loader is slow")
	f.slowLoader()
	f.checks(nil, `a load of "report" has run for`)
	f.ctl(0, "--prefix shop inspect report", "1 other instance waits")
	f.measures(1, "cacheguard_requests_waiting", `cache="shop"`, "1", nil)
	f.shows(0, "running", func(s *shown) bool {
		running := s.Guards[0].Running
		return len(running) == 1 && running[0].Key == "report" && running[0].Took > slow.Seconds()
	})
	f.logs(0, "slow load", "it still runs", "key=report", "after=")
	f.ask(0, "/release")
	f.logs(0, "slow load", "key=report", "took=")
	f.counts(0, "cacheguard_load_duration_seconds_count", `cache="shop",result="ok"`, nil)
}

func TestADeadHolderIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "An instance died while it loaded")
	f.deadHolder()
	f.logs(1, "lease taken over", "key=report")
	f.counts(1, "cacheguard_takeovers_total", `cache="shop"`, nil)
	f.shows(1, "taken over", func(s *shown) bool { return s.Guards[0].Caches[0].Takeovers == 1 })
	f.checks(nil, "connection refused", "shop-2", "taken over from instances that died")
}

func TestSaturatedMaxLoadsIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Loads wait for MaxLoads")
	f.saturatedMaxLoads()
	f.checks(nil, "3 loads wait for MaxLoads, which is 2")
	f.measures(0, "cacheguard_loads_queued", `cache="shop"`, "3", nil)
	f.measures(0, "cacheguard_loads_limit", `cache="shop"`, "2", nil)
	f.measures(0, "cacheguard_loads_in_flight", `cache="shop"`, "2", nil)
	f.logs(0, "loads wait for MaxLoads", "max_loads=2")
	f.shows(0, "loads wait", func(s *shown) bool { return s.Guards[0].Queued == 3 && s.Guards[0].Troubles["saturated"] > 0 })
	f.ask(0, "/release")
	f.logs(0, "no load waits for MaxLoads", "loads_that_waited=3", "lasted=")
}

func TestAFrozenRedisIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Redis is frozen")
	f.ask(0, "/get?key=a")
	f.frozenRedis()
	f.measures(0, "cacheguard_breakers_open", `cache="shop"`, "1", func() { f.ask(0, "/get?key=b") })
	f.logs(0, "redis unavailable")
	f.shows(0, "does not answer", func(s *shown) bool { return s.Guards[0].Troubles["outage"] > 0 })
	f.ctl(3, "--prefix shop check")
	f.server.Resume()
	f.measures(0, "cacheguard_breakers_open", `cache="shop"`, "0", func() { f.ask(0, "/get?key=c") })
	f.logs(0, "redis available again", "lasted=", "requests_failed=", "loads_without_redis=")
}

func TestASlowRedisIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Redis is slow")
	f.slowRedis()
	n := 0
	ask := func() {
		n++
		f.ask(0, fmt.Sprintf("/get?key=slow-%d", n))
	}
	f.checks(ask, "Redis takes longer than the loads that it saves")
	f.measures(0, "cacheguard_slow_parts", `cache="shop"`, "1", nil)
	f.counts(0, "cacheguard_hedged_loads_total", `cache="shop"`, ask)
	f.logs(0, "redis is slow", "loads=")
	f.shows(0, "takes longer than the loads", func(s *shown) bool { return s.Guards[0].Troubles["slow"] > 0 })
}

func TestAFullRedisIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Redis is full")
	f.fullRedis()
	f.checks(func() { f.ask(0, "/get?key=b") }, "full, values are not stored", "Redis answered with an error", "acquire: OOM")
	f.ctl(1, "--prefix shop check", "OOM", "memory")
	f.counts(0, "cacheguard_redis_errors_total", `cache="shop",op="acquire"`, func() { f.ask(0, "/get?key=a") })
	f.logs(0, "redis failed", "OOM")
}

func TestARightThatIsMissingIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "The user lacks a right")
	f.missingRight()
	f.checks(func() { f.ask(0, "/get?key=b") }, "Redis answered with an error", "acquire: NOPERM")
	f.counts(0, "cacheguard_redis_errors_total", `cache="shop",op="acquire"`, func() { f.ask(0, "/get?key=a") })
	f.logs(0, "redis failed", "NOPERM", "evalsha")
	f.ctl(1, "--prefix shop check", "EVALSHA")
}

func TestADeadSubscriptionIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "The subscription is dead")
	f.deadSubscription()
	f.measures(0, "cacheguard_subscription_up", `cache="shop"`, "0", nil)
	f.logs(0, "subscription lost")
	f.shows(0, "Messages do not arrive", func(s *shown) bool { return s.Guards[0].Troubles["deaf"] > 0 })
	f.ctl(1, "--prefix shop check", "channel")
	f.checks(nil, "messages do not arrive")
	f.ctl(0, "--prefix shop stats", "listeners", "0")
	f.redis("ACL", "SETUSER", "app", "&*")
	f.logs(0, "subscription back", "lasted=")
}

func TestASubscriptionThatWasNeverAllowedIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "The subscription is dead")
	f.redis("ACL", "SETUSER", "app", "resetchannels")
	f.ask(0, "/get?key=a") // the first that needs messages
	f.measures(0, "cacheguard_subscription_up", `cache="shop"`, "0", nil)
	f.logs(0, "cannot subscribe", "NOPERM", "shop:invalidated")
	f.shows(0, "Messages do not arrive", func(s *shown) bool { return s.Guards[0].Troubles["deaf"] > 0 })
	f.ctl(1, "--prefix shop check", "channel")
	f.redis("ACL", "SETUSER", "app", "&*")
	f.logs(0, "subscription established", "lasted=")
}

// listeners is how many instances listen to invalidations.
func (f *fleet) listeners() int64 {
	f.Helper()
	n, err := f.server.Client(f).PubSubNumSub(f.Context(), "shop:invalidated").Result()
	if err != nil {
		f.Fatal(err)
	}
	return n["shop:invalidated"]
}

func TestLoadsThatFailAreFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Loads fail")
	f.checks(f.lockedTable, "of loads fail, for ", "last: relation reports is locked")
	f.logs(0, "loads fail", `error="relation reports is locked"`)
	f.counts(0, "cacheguard_load_duration_seconds_count", `cache="shop",result="error"`, f.lockedTable)
	f.shows(0, "loads fail", func(s *shown) bool {
		f.lockedTable()
		return s.Guards[0].Caches[0].Failing.Failed > 0
	})
}

func TestDamagedEntriesAreFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "Entries cannot be decoded")
	f.damagedEntries()
	f.ctl(0, "--prefix shop inspect a", `"a": damaged`)
	f.ask(0, "/get?key=a")
	f.logs(0, "entry cannot be decoded", "key=a")
	f.counts(0, "cacheguard_damaged_entries_total", `cache="shop"`, nil)
	f.shows(0, "could not be decoded", func(s *shown) bool { return s.Guards[0].Caches[0].Damaged == 1 })
	f.checks(nil, "entries could not be decoded lately: 1")
}

func TestAHotKeyIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "A key is hot")
	f.hotKey()
	f.checks(f.hotKey, `its hottest key is "home"`)
	f.shows(0, "Hot keys", func(s *shown) bool {
		f.ask(0, "/get?key=home&times=2000")
		return len(s.Guards[0].Hot) > 0 && s.Guards[0].Hot[0].Key == "home"
	})
	f.documented("`cacheguard_requests_total")
	if !strings.Contains(f.ask(0, "/metrics"), `cacheguard_requests_total{cache="shop",result="local"}`) {
		t.Error("the metric is not there")
	}
}

func TestALockThatNobodyGivesUpIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "A lock is not given up")
	f.heldLock()
	f.ctl(0, "--lock-prefix jobs locks show import --json", `"instance":"shop-1"`, `"waiting":1`)
	f.shows(0, "Locks", func(s *shown) bool { return len(s.Lockers[0].Locks) == 1 && s.Lockers[0].Locks[0].Name == "import" })
	f.ctl(0, "--lock-prefix jobs locks revoke import --yes", "revoked")
	f.ctl(0, "--lock-prefix jobs locks show import", "shop-2")
	f.counts(0, "cacheguard_locks_lost_total", `lock="jobs",reason="revoked"`, nil)
}

// The process lives and has forgotten it, and then it dies.
func TestAnIntentThatNobodyEndsIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "An intent stands and nobody is there")
	f.forgottenIntent()
	f.ctl(0, "--prefix shop inspect report", "an intent stands, of a transaction by shop-1 for ", "believed to be alive for another")
	f.measures(0, "cacheguard_intents", `cache="shop"`, "1", f.forgottenIntent)
	f.counts(0, "cacheguard_intent_oldest_seconds", `cache="shop"`, f.forgottenIntent)
	f.checks(f.forgottenIntent, "1 intent stands, the oldest for ")
	f.shows(0, "intents stand", func(s *shown) bool {
		f.forgottenIntent()
		return s.Guards[0].Intents == 1 && s.Guards[0].Troubles["intent"] > 0
	})
	f.logs(0, "intent stood for longer than UpdateTimeout")

	f.forgottenIntent()
	f.instances[0].Kill()
	f.checks(nil, "connection refused")
	redistest.Await(t, "the intent has expired", func() bool {
		code, out := f.run("--prefix", "shop", "inspect", "report")
		return code == 0 && !strings.Contains(out, "intent")
	})
}

func TestAnUpdateWhoseWriteHangsIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "An intent stands and nobody is there")
	f.hangingWrite()
	f.ctl(0, "--prefix shop inspect report", "updated by shop-1 for ")
	f.measures(0, "cacheguard_intents", `cache="shop"`, "1", f.hangingWrite)
	f.checks(f.hangingWrite, "1 intent stands, the oldest for ")
	f.shows(0, "intents stand", func(s *shown) bool {
		f.hangingWrite()
		return s.Guards[0].Troubles["intent"] > 0
	})
	f.hangingWrite()
	f.ask(1, "/get?key=report&held=yes")
	f.logs(1, "a load waits for an Update", "key=report", "by=shop-1", "for=")
	f.logs(0, "update stood for longer than UpdateTimeout")
}

func TestAWriteThatDoesNotInvalidateShowsInTheAgeOfItsEntry(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "A write does not invalidate")
	f.silentWrite()
	f.ctl(0, "--prefix shop inspect price:42", "stored ")
	f.ctl(0, "--prefix shop invalidate price:42", "")
}
