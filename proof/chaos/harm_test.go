package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	lease       = time.Second      // of everything; shorter than a stop
	loadTimeout = 30 * time.Second // the default
)

// harm is something that happens while the processes work.
type harm struct {
	do     func(c *chaos)
	breaks bool // calls to Redis fail meanwhile, or it forgets leases
}

var (
	// killOne ends a process without warning, and starts another in its place.
	killOne = harm{do: func(c *chaos) {
		i := rand.N(processes)
		c.running[i].Kill()
		c.spawn(i)
	}}
	// killWriter does so when a process has written, and has not said so.
	killWriter = harm{do: func(c *chaos) {
		i := rand.N(processes)
		c.running[i].WriteLine("die")
		ended := make(chan struct{})
		go func() { // owner: the test; ends with the process, which is killed at the latest below; joined below
			defer close(ended)
			_ = c.running[i].Wait() // it was killed
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
		}
		c.running[i].Kill()
		<-ended
		c.spawn(i)
	}}
	// stopMost stops all processes but one for longer than a lease, so that what they held goes to the other.
	stopMost = harm{do: func(c *chaos) {
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
	}, breaks: true}
	rest             = harm{do: func(c *chaos) { c.pause(time.Second) }}
	forgetScripts    = harm{do: func(c *chaos) { c.everywhere("script", "flush") }}
	closeConnections = harm{do: func(c *chaos) {
		c.everywhere("client", "kill", "type", "normal")
		c.everywhere("client", "kill", "type", "pubsub")
	}, breaks: true}
	restart = harm{do: func(c *chaos) {
		c.servers[0].Kill()
		c.pause(100 * time.Millisecond)
		c.servers[0].Restart()
	}, breaks: true}
	// freeze stops one server for longer than every time-out.
	freeze = harm{do: func(c *chaos) {
		s := c.servers[rand.N(len(c.servers))]
		s.Pause()
		c.pause(1200 * time.Millisecond)
		s.Resume()
	}, breaks: true}
	// fill makes Redis refuse writes for a while, and evict throw away what it likes.
	fill = harm{do: func(c *chaos) { c.limited("noeviction") }, breaks: true}
	// noReplicas makes Redis refuse writes as a primary does whose replicas are away.
	noReplicas = harm{do: func(c *chaos) {
		c.everywhere("config", "set", "min-replicas-to-write", "1")
		c.pause(time.Second)
		c.everywhere("config", "set", "min-replicas-to-write", "0")
	}, breaks: true}
	evict = harm{do: func(c *chaos) { c.limited("allkeys-random") }, breaks: true}
	// evictSome throws away any keys, one by one.
	evictSome = harm{do: func(c *chaos) {
		for range 200 {
			for i := range 5 * len(c.servers) { // most keys are of calls for thousands
				i %= len(c.servers)
				if key, err := c.client(i).RandomKey(context.Background()).Result(); err == nil {
					_ = c.client(i).Del(context.Background(), key).Err() // the next one, then
				}
			}
			c.pause(2 * time.Millisecond)
		}
	}, breaks: true}
	// moveSlots moves the slots of some rows, key by key.
	moveSlots = harm{do: func(c *chaos) {
		for range 5 {
			if err := c.cluster.Move(context.Background(), c.slotOf(someRow()), rand.N(3), nil); err != nil {
				c.Error(err)
			}
		}
	}, breaks: true}
	// slow makes everything take its time.
	slow = harm{do: func(c *chaos) {
		for _, p := range c.proxies {
			p.Delay(rand.N(40 * time.Millisecond))
		}
		c.pause(time.Second)
		for _, p := range c.proxies {
			p.Delay(0)
		}
	}, breaks: true}
	lateReplies = harm{do: func(c *chaos) { c.faulty(redistest.HoldReply) }, breaks: true}
	lateCopies  = harm{do: func(c *chaos) { c.faulty(redistest.Hold) }, breaks: true}
	lostReplies = harm{do: func(c *chaos) { c.faulty(redistest.DropReply) }, breaks: true}
	cutBefore   = harm{do: func(c *chaos) { c.faulty(redistest.CutBefore) }, breaks: true}
	refused     = harm{do: func(c *chaos) { c.faulty(redistest.ReplyError("LOADING Redis is loading the dataset in memory")) }, breaks: true}
	deaf        = harm{do: func(c *chaos) {
		p := c.proxies[rand.N(len(c.proxies))]
		p.BlackHoleSubscribers(true)
		c.pause(time.Second)
		p.BlackHoleSubscribers(false)
	}, breaks: true}
)

// faulty has something happen to some commands on their way, whatever they are.
func (c *chaos) faulty(fault redistest.Fault) {
	one := 2 + rand.N(20)
	for range 4 {
		var rules []*redistest.Rule
		for _, p := range c.proxies {
			rules = append(rules, p.On(func(args []string) bool {
				switch args[0] {
				case "hello", "client", "subscribe", "cluster":
					return false
				}
				return rand.N(one) == 0
			}, fault).Times(1+rand.N(6)))
		}
		c.pause(rand.N(900 * time.Millisecond)) // beyond RedisTimeout, often
		for _, rule := range rules {
			rule.Remove()
		}
	}
}

func (c *chaos) limited(policy string) {
	c.everywhere("config", "set", "maxmemory-policy", policy)
	c.everywhere("config", "set", "maxmemory", "1")
	c.pause(300 * time.Millisecond)
	c.everywhere("config", "set", "maxmemory", "0")
}

// failOver kills a primary, waits until its replica has taken its place, and makes it come back as the replica.
var failOver = harm{do: func(c *chaos) {
	from := now()
	primary, replica := c.pair[0], c.pair[1]
	primary.Kill()
	redistest.Await(c, "the replica is promoted", func() bool { return role(replica) == "master" })
	primary.Restart()
	settled := func() bool { return leads(replica, primary) || leads(primary, replica) } // sentinels on a busy machine may fail over again
	for range 600 {                                                                      // or look twice before they tell the old one to follow
		if settled() {
			break
		}
		c.pause(100 * time.Millisecond)
	}
	redistest.Await(c, "one follows the other", settled)
	if leads(replica, primary) {
		c.pair[0], c.pair[1] = replica, primary
	}
	// What had been acknowledged in the last moment before may be forgotten, until the entry it should have removed expires.
	c.check.forgets = append(c.check.forgets, span{from - int64(time.Second), now() + int64(c.ttl+2*lease)})
}, breaks: true}

// leads reports whether one server is the primary, and the other its replica.
func leads(primary, replica *redistest.Server) bool {
	return role(primary) == "master" && role(replica) == "slave" && replica.Info("replication")["master_link_status"] == "up"
}

func role(s *redistest.Server) string { return s.Info("replication")["role"] }
