package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// trouble is what happens to those who read and invalidate.
type trouble struct {
	name string
	do   func(r *revocation)
}

var (
	killReader = trouble{"a reader is killed", func(r *revocation) {
		i := rand.N(readers)
		r.readers[i].Kill()
		r.read(i)
	}}
	stopReader = trouble{"a reader is stopped", func(r *revocation) {
		p := r.readers[rand.N(readers)]
		p.Pause()
		r.pause(rand.N(3 * time.Second))
		p.Resume()
	}}
	suspendReader = trouble{"a reader is suspended", func(r *revocation) {
		r.clocks(r.readers[rand.N(readers)].Suspend(time.Duration(1+rand.N(3)) * time.Second))
	}}
	stepClock = trouble{"a reader's clock steps", func(r *revocation) {
		r.clocks(r.readers[rand.N(readers)].SetClock(time.Duration(rand.N(20)-10) * time.Second))
	}}
	// killInvalidator kills it when Redis has run its script, before it hears of that.
	killInvalidator = trouble{"an invalidator is killed after its script", func(r *revocation) {
		const i = 0
		rule := r.fatal.On(func(args []string) bool {
			return strings.HasPrefix(args[0], "eval") && r.ledger.dying[i].Load() > 0 && strings.Contains(strings.Join(args, " "), "{row:0}")
		}, redistest.HoldReply).Times(1)
		r.ledger.dies[i].Store(true)
		select {
		case <-rule.Hit():
			r.invalidators[i].Kill()
			r.ledger.returned[theDead][mortal].add(r.ledger.dying[i].Load())
			r.deaths++
		case <-time.After(5 * time.Second):
			r.invalidators[i].Kill() // it was not asked for anything
		}
		rule.Remove()
		r.ledger.dies[i].Store(false)
		r.ledger.dying[i].Store(0)
		r.revoke(i)
	}}
	// loseNotices ends subscriptions whose messages have not arrived: they are lost.
	loseNotices = trouble{"notices are lost", func(r *revocation) {
		until := mono() + int64(rand.N(1500*time.Millisecond))
		for _, road := range r.roads {
			road.some(subscription, func(l *lane) { l.until.Store(until) })
		}
		r.pause(time.Duration(until - mono()))
		_ = r.server.Client(r).Do(context.Background(), "client", "kill", "type", "pubsub").Err() // it closes no other
		for _, road := range r.roads {
			road.some(subscription, (*lane).cut)
		}
	}}
	cutSubscriptions = trouble{"a subscription is cut", func(r *revocation) {
		road := r.roads[rand.N(readers)]
		for range 5 {
			road.some(subscription, (*lane).cut)
			r.pause(rand.N(300 * time.Millisecond))
		}
	}}
	hangSubscriptions = trouble{"a subscription hangs, and goes on", func(r *revocation) {
		until := mono() + int64(rand.N(5*time.Second))
		r.roads[rand.N(readers)].some(subscription, func(l *lane) { l.until.Store(until) })
		r.pause(time.Duration(until - mono()))
	}}
	slowSubscriptions = trouble{"a subscription is slow", func(r *revocation) {
		road := r.roads[rand.N(readers)]
		road.some(subscription, func(l *lane) { l.each.Store(int64(rand.N(2 * time.Second))) })
		r.pause(3 * time.Second)
		road.some(subscription, func(l *lane) { l.each.Store(0) })
	}}
	slowRoad = trouble{"all replies are late", func(r *revocation) {
		until := mono() + int64(rand.N(800*time.Millisecond))
		r.roads[rand.N(readers)].some(anyLane, func(l *lane) { l.until.Store(until) })
	}}
	// killPrimary is a failover: the primary dies, and comes back as a replica.
	killPrimary = trouble{"a primary is killed", func(r *revocation) { r.loses((*redistest.Server).Kill, nil) }}
	// freezePrimary is one, too. It dies before it goes on, as one does that is fenced.
	freezePrimary = trouble{"a primary freezes, and is fenced", func(r *revocation) { r.loses((*redistest.Server).Pause, nil) }}
	// restartPrimary has it come back, with nothing, while the sentinel still names it.
	restartPrimary = trouble{"a primary is killed, and restarts at once", func(r *revocation) {
		r.loses((*redistest.Server).Kill, (*redistest.Server).Restart)
	}}
	// resumePrimary has it go on, with everything that it had, until the sentinel makes it a replica.
	resumePrimary = trouble{"a primary freezes, and goes on", func(r *revocation) {
		r.loses((*redistest.Server).Pause, (*redistest.Server).Resume)
	}}
	// cutBus has one node of a cluster stand still, and the others lose what they have to say to it.
	cutBus = trouble{"the bus of a cluster is cut", func(r *revocation) {
		ctx, frozen := context.Background(), rand.N(3)
		node, id := r.cluster.Node(frozen), r.nodes[frozen].ClusterMyID(ctx).Val()
		node.Pause()
		lasts := []time.Duration{400 * time.Millisecond, 1500 * time.Millisecond}[rand.N(2)] // subscribers bear the former, and keep what they have
		for until := mono() + int64(rand.N(lasts)); mono() < until; r.pause(20 * time.Millisecond) {
			for i, other := range r.nodes {
				if i == frozen {
					continue
				}
				if _, err := redistest.CutBus(ctx, other, id); err != nil {
					r.Error(err)
				}
			}
		}
		node.Resume()
		for i, rdb := range r.nodes {
			redistest.Await(r, fmt.Sprintf("node %d says that the cluster is well", i), func() bool {
				return strings.Contains(rdb.ClusterInfo(ctx).Val(), "cluster_state:ok")
			})
		}
		r.pause(2 * time.Second) // tiers have something again
	}}
)

func (r *revocation) pause(d time.Duration) { <-time.After(d) }

func (r *revocation) clocks(err error) {
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.Error(err)
	}
}

// loses loses the primary, waits for another one, and makes it a replica. When it comes back, it takes itself for the primary until the sentinel has
// told it otherwise: a client that reads there hears of nothing. With back, that is before the change is announced; else only who had asked for its
// address before, and was kept from dialling it, reads there.
func (r *revocation) loses(how, back func(*redistest.Server)) {
	var primary *redistest.Server
	redistest.Await(r, "all follow one", func() bool {
		primary = r.primary()
		return primary != nil
	})
	if back != nil {
		r.split()
	}
	how(primary)
	redistest.Await(r, "a replica is promoted", func() bool {
		return slices.ContainsFunc(r.servers, func(s *redistest.Server) bool { return s != primary && role(s) == "master" })
	})
	if back != nil {
		back(primary)
	} else {
		primary.Kill()
	}
	redistest.Await(r, "the sentinel says so", func() bool {
		addr, err := r.sentinel.GetMasterAddrByName(context.Background(), r.master).Result()
		return err == nil && net.JoinHostPort(addr[0], addr[1]) != primary.Addr()
	})
	if back == nil {
		r.split()
		primary.Restart()
	}
	redistest.Await(r, "all follow one", func() bool { return r.primary() != nil })
	r.leave(primary)
	r.ledger.split.until.Store(mono())
	r.failovers++
}

// split notes that from now on two servers may take themselves for the primary.
func (r *revocation) split() {
	r.ledger.split.until.Store(math.MaxInt64 / 2)
	r.ledger.split.since.Store(mono())
}

// leave has clients leave a server, those included that had asked for its address before, and dialled it when the sentinel had closed all others.
func (r *revocation) leave(s *redistest.Server) {
	r.pause(time.Second)
	for _, kind := range []string{"normal", "pubsub"} {
		if err := s.Client(r).Do(context.Background(), "client", "kill", "type", kind).Err(); err != nil {
			r.Error(err)
		}
	}
}

// primary is the one that all others follow; nil: there is none.
func (r *revocation) primary() (primary *redistest.Server) {
	following := 0
	for _, s := range r.servers {
		switch info := s.Info("replication"); {
		case info["role"] == "master":
			primary = s
		case info["master_link_status"] == "up":
			following++
		}
	}
	if following < len(r.servers)-1 {
		return nil
	}
	return primary
}
