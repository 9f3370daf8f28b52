package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

const lease = time.Second // of everything; shorter than a stop

// harm is something that happens while the processes work.
type harm func(c *chaos)

// killOne ends a process without warning, and starts another in its place.
func killOne(c *chaos) {
	i := rand.N(processes)
	c.running[i].Kill()
	c.spawn(i)
}

// stopMost stops all processes but one for longer than a lease, so that what they held goes to the other.
func stopMost(c *chaos) {
	spared := rand.N(processes)
	for i, p := range c.running {
		if i != spared {
			p.Pause()
		}
	}
	c.pause(lease + lease/2)
	for i, p := range c.running {
		if i != spared {
			p.Resume()
		}
	}
}

func forgetScripts(c *chaos) { c.everywhere("script", "flush") }

func closeConnections(c *chaos) {
	c.everywhere("client", "kill", "type", "normal")
	c.everywhere("client", "kill", "type", "pubsub")
}

func restart(c *chaos) {
	c.servers[0].Kill()
	c.pause(100 * time.Millisecond)
	c.servers[0].Restart()
}

// fill makes Redis refuse writes for a while.
func fill(c *chaos) { c.limited("noeviction") }

// evict makes Redis throw away what it likes.
func evict(c *chaos) { c.limited("allkeys-random") }

func (c *chaos) limited(policy string) {
	c.everywhere("config", "set", "maxmemory-policy", policy)
	c.everywhere("config", "set", "maxmemory", "1")
	c.pause(300 * time.Millisecond)
	c.everywhere("config", "set", "maxmemory", "0")
}

// moveSlots moves the slots of some rows, key by key.
func moveSlots(c *chaos) {
	for range 5 {
		if err := c.cluster.Move(context.Background(), c.slotOf(rowOf(rand.N(keys))), rand.N(3), nil); err != nil {
			c.Error(err)
		}
	}
}

// failOver kills a primary, waits until its replica has taken its place, and makes it come back as the replica.
func failOver(c *chaos) {
	from := now()
	primary, replica := c.pair[0], c.pair[1]
	primary.Kill()
	redistest.Await(c, "the replica is promoted", func() bool { return role(replica) == "master" })
	primary.Restart()
	redistest.Await(c, "the old primary follows", func() bool {
		return role(primary) == "slave" && primary.Info("replication")["master_link_status"] == "up"
	})
	c.pair[0], c.pair[1] = replica, primary
	// What had been acknowledged in the last moment before may be forgotten, until the entry it should have removed expires.
	c.failovers = append(c.failovers, span{from - int64(time.Second), now() + int64(ttl+2*lease)})
}

func role(s *redistest.Server) string { return s.Info("replication")["role"] }
