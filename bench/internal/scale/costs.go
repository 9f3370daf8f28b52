// Package scale compares cacheguard with a model of itself: what a load costs when thousands wait for it, beside what one of each thing
// costs. The model and the results are in bench/SCALE.md.
package scale

import (
	"math"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// costs are what one of each thing costs, measured on fleets that are small beside the fleets that they are to predict. Times
// are in microseconds, sizes in bytes.
type costs struct {
	lone         float64 // of the server: GET, acquire and fill of an instance that nobody else waits with
	fill         float64 // of that, fill
	fillScript   float64 // of that, inside the script
	rtt          float64 // from sending a GET to its reply, at a server that has nothing else to do
	alone        timing  // from the end of a load that nobody else waits for to its caller's answer
	caller       timing  // from one caller's answer to the next one's, on one instance
	follower     float64 // bytes of one more caller who waits
	sharing      float64 // bytes of one more Guard on a client that has one
	sharedWaiter float64 // more bytes of it while it waits
	lease        float64 // bytes at the server: a key that is being loaded
	probe        float64 // of the server: an inbox probed by its own process, when there is little else to do
	idle         float64 // of the server: an idle second
	few, many    crowding
}

// timing is a time, and the same when nothing disturbs.
type timing struct{ usual, best float64 }

// crowding is what each of that many instances costs. They cost more the more there are, as the caches of processors hold
// less of each.
type crowding struct {
	instances int

	// Of the server, reading and writing included.
	get     float64 // of a missing key
	acquire float64 // of a lease that is held
	publish float64 // to one inbox: inside fill, while nobody is served
	write   float64 // of that message to its socket

	// Of this process.
	asking float64 // GET and acquire
	waking float64 // from the message to the caller's answer

	// Memory, in bytes.
	guard       float64 // an instance, in this process
	waiter      float64 // more of it while it waits for a key, the caller included
	connections float64 // an instance's, at the server
	inbox       float64 // one that waits, in the lease
}

// at is what each of n instances costs. Between the sizes that were measured, and beyond, time grows with the logarithm of
// their number. Memory does not grow, but a lease is kept in another form when there are many inboxes in it.
func (c *costs) at(n int) crowding {
	share := max(0, math.Log(float64(n)/float64(c.few.instances))/math.Log(float64(c.many.instances)/float64(c.few.instances)))
	grown := func(few, many float64) float64 { return few + max(many-few, 0)*share }
	is := crowding{
		instances: n,
		get:       grown(c.few.get, c.many.get), acquire: grown(c.few.acquire, c.many.acquire),
		publish: grown(c.few.publish, c.many.publish), write: grown(c.few.write, c.many.write),
		asking: grown(c.few.asking, c.many.asking), waking: grown(c.few.waking, c.many.waking),
		guard: c.many.guard, waiter: c.many.waiter, connections: c.many.connections, inbox: c.many.inbox,
	}
	const longestList = 512 // hash-max-listpack-entries of Redis 7.0
	if n < longestList {
		is.inbox = c.few.inbox
	}
	return is
}

func (c *costs) figures() scenario.Figures {
	return scenario.Figures{
		"RTT": c.rtt, "alone": c.alone.usual, "caller": c.caller.usual, "lone": c.lone, "fill": c.fill, "probe": c.probe, "idle": c.idle,
		"sharing": c.sharing, "follower": c.follower, "lease": c.lease,
	}
}

func (c crowding) figures() scenario.Figures {
	return scenario.Figures{
		"GET": c.get, "acquire": c.acquire, "publish": c.publish, "write": c.write, "asking": c.asking, "waking": c.waking,
		"guard": c.guard, "waiter": c.waiter, "connections": c.connections, "inbox": c.inbox,
	}
}

// All are the scenarios. They measure on the loopback interface.
func All() []scenario.Scenario {
	all := []scenario.Scenario{unitCosts(), manyGuards(), manyCallers(), manyKeys(), idleGuards()}
	for _, s := range all {
		for i := range s.Cases {
			s.Cases[i].Away = []time.Duration{0}
		}
	}
	return all
}
