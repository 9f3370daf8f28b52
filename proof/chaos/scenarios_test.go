package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestPromisesHoldWhileProcessesDieAndConnectionsBreak(t *testing.T) {
	t.Parallel()
	c := onOneServer(t, "REDISTIMEOUT=4s")
	c.check.keeps, c.check.swaps = true, true
	c.rage(killOne, killWriter, rest, forgetScripts, stopMost, rest, killWriter, rest, closeConnections)
}

func TestPromisesHoldWhileRedisLosesItsData(t *testing.T) {
	t.Parallel()
	onOneServer(t).rage(restart, evictSome, killOne, evict, freeze, evictSome, noReplicas, stopMost, fill)
}

func TestPromisesHoldWhileMessagesAreLateAndLost(t *testing.T) {
	t.Parallel()
	onLongWay(t).rage(lateReplies, lateCopies, lostReplies, slow, cutBefore, killOne, deaf, refused, stopMost)
}

func TestPromisesHoldWhileAClusterMovesItsSlots(t *testing.T) {
	t.Parallel()
	onCluster(t, 0).rage(moveSlots, killOne, evictSome, moveSlots, forgetScripts, moveSlots, closeConnections, freeze)
}

func TestPromisesHoldBesideFailovers(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(t *testing.T) *chaos{
		"sentinel": onSentinel,
		"cluster":  func(t *testing.T) *chaos { return onCluster(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			build(t).rage(killOne, failOver, forgetScripts)
		})
	}
}

// A Get that began more than MaxLag after an invalidation had returned, or had been made by one who died then, has nothing older from a tier.
// From Redis it has nothing older at all, unless that is a primary that is none any more.
func TestNoTierAnswersWithWhatWasInvalidatedLongerAgoThanMaxLag(t *testing.T) { // alone: its processes need their echoes within MaxLag
	for name, run := range map[string]func(t *testing.T){
		"one server": func(t *testing.T) {
			onRoads(t).rage(killReader, stopReader, suspendReader, killInvalidator, loseNotices, cutSubscriptions, hangSubscriptions, slowSubscriptions,
				slowRoad, stepClock)
		},
		"scripts may not publish": func(t *testing.T) {
			onRoads(t, "REFUSING=yes").rage(killInvalidator, stopReader, killInvalidator, hangSubscriptions, killReader)
		},
		"sentinel": func(t *testing.T) {
			underSentinel(t).rage(killPrimary, stopReader, freezePrimary, restartPrimary, stepClock, killReader, resumePrimary)
		},
		"cluster": func(t *testing.T) { onBus(t).rage(cutBus, stopReader, cutBus, killReader, cutBus) },
	} {
		t.Run(name, run)
	}
}

// Echoes of a process that are published without a script vouch for notices that never come.
func TestPlainEchoesAreFoundWhereScriptsMayNotPublish(t *testing.T) { // alone, too
	r := onRoads(t, "REFUSING=mistaken")
	r.mistaken = true
	r.rage(killInvalidator)
}

// What a bus loses is missed by its number, and by nothing else.
func TestNoticesThatNobodyMissesAreFoundWhereABusIsCut(t *testing.T) { // alone, too
	r := onBus(t, "UNNUMBERED=yes", "SINGLE=yes", "BOUND=3s")
	r.mistaken = true
	r.rage(cutBus)
}

// Each promise is broken by a cache made by hand, or the other tests prove nothing.
func TestTheUsualMistakesAreFound(t *testing.T) {
	t.Parallel()
	c := onOneServer(t, "WRONG=yes")
	c.env = append(c.env, "THINK=4ms", "BULK=200", "MOST=150") // however long the other tests last: two that think for longer seldom meet
	c.expected, c.check.keeps, c.check.swaps = true, true, true
	c.check.delay, c.check.slack = time.Second, 500*time.Millisecond
	missing := promises
	for range 10 { // mistakes show by chance
		for i := range processes {
			c.spawn(i)
		}
		for _, h := range []harm{rest, killWriter, fill, killWriter, rest, rest, rest, rest, rest} {
			c.suffer(h)
		}
		c.settle()
		missing = slices.DeleteFunc(slices.Clone(promises), func(promise string) bool { return len(c.check.found[promise]) > 0 })
		if len(missing) == 0 {
			return
		}
		t.Logf("nothing of %q yet", missing)
	}
	t.Errorf("nothing was found of %q", missing)
}

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	leaks.Main(m)
}
