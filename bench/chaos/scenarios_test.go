package chaos

import (
	"testing"
	"time"
)

func TestPromisesHoldWhileProcessesDieAndConnectionsBreak(t *testing.T) {
	t.Parallel()
	c := onOneServer(t, "REDISTIMEOUT=4s")
	c.check.keeps, c.check.swaps = true, true
	c.rage(killOne, killWriter, rest, forgetScripts, stopMost, rest, killWriter, rest, closeConnections)
}

func TestPromisesHoldWhileRedisLosesItsData(t *testing.T) {
	t.Parallel()
	onOneServer(t).rage(restart, evictSome, killOne, evict, freeze, evictSome, stopMost, fill)
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

// Each promise is broken by a cache made by hand, or the other tests prove nothing.
func TestTheUsualMistakesAreFound(t *testing.T) {
	t.Parallel()
	c := onOneServer(t, "WRONG=yes")
	c.check.keeps, c.check.swaps = true, true
	c.check.delay, c.check.slack = time.Second, 500*time.Millisecond
	for i := range processes {
		c.spawn(i)
	}
	for _, h := range []harm{rest, killWriter, fill, rest, killWriter, rest, rest, rest, rest, rest} {
		c.suffer(h)
	}
	c.settle()
	for _, promise := range promises {
		if len(c.check.found[promise]) == 0 {
			t.Errorf("%s: nothing was found", promise)
		}
	}
}
