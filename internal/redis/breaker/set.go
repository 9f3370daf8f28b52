// Package breaker keeps a process from asking a Redis that does not answer: a circuit breaker (sony/gobreaker) for each
// part of the keyspace that can fail by itself.
//
// A breaker opens after five failures in a row, or when half of the operations of the last ten seconds failed. Slow
// counts as failed: an operation that is given up after its time-out is like one that was refused. While it is open, it
// refuses every operation at once, and probes Redis in the background: it reads a key that is not there, every quarter
// to half of a second. The first answer closes it. No caller's operation is a probe, as one in a second would wait for
// the time-out.
//
// A part that answers, but later than what it saves would cost, is slow (see latency and mood): its callers are told,
// who have something better to do than to wait. Background probes measure until it is quick again.
//
// A cluster's nodes fail one by one, and its slots are mostly in a few ranges per node. So the slots are divided into
// Parts ranges, each with its own breaker and, in package send, its own lanes: a dead node does not hold up the keys of
// others. Two nodes that share a part share its fate. Each failure makes the client reload the cluster's slots: by
// itself go-redis goes on with a dead primary for up to a minute after another took its place, because only a node that
// is alive answers MOVED. One server has one breaker, and so has a Ring, whose heartbeat takes dead shards out.
package breaker

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/perclient"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Parts is the number of parts that the keys of a cluster are cut into. The usual numbers of nodes divide it. More
// parts would confine the failure of a node of a large cluster better, and make batches smaller.
const Parts = 6

// Set has the breakers of one client.
type Set struct {
	rdb     script.Processor
	prefix  string
	timeout time.Duration
	life    *lifecycle.Life
	parts   []*Breaker
	client  any // the user's
}

// New returns the breakers of a client, whose probes read keys with the prefix and wait for the timeout. OnChange,
// which may be nil, is called when a breaker has opened or closed.
func New(rdb script.Processor, prefix string, timeout time.Duration, onChange func(open bool)) *Set {
	s, n := &Set{rdb: script.Once(rdb), prefix: prefix, timeout: timeout, client: rdb, life: lifecycle.New()}, 1
	if goredis.IsCluster(rdb) {
		n = Parts
	}
	for part := range n {
		s.parts = append(s.parts, newBreaker(s.life, func() error { return s.probe(part) }, onChange, s.askWhoServes))
	}
	return s
}

// Watch has a part be slow when its replies take longer than the loads cost that it saves. It is called before anything
// is asked. OnSlow is called when a part has become slow, or is so no more.
func (s *Set) Watch(cost func() time.Duration, onSlow func(slow bool)) {
	for _, b := range s.parts {
		b.mood.cost, b.onSlow = cost, onSlow
	}
}

// Close ends the probes, and waits for them: when Redis hangs, for the client's own time-outs.
func (s *Set) Close() { s.life.Close(context.Canceled, nil) }

// Key returns a key of the part, any one: if two nodes share it, each has its turn.
func (s *Set) Key(part int) string {
	key := keys.Tagged(s.prefix, rand.Text())
	for s.Part(key) != part {
		key = keys.Tagged(s.prefix, rand.Text())
	}
	return key
}

func (s *Set) probe(part int) error {
	key := s.Key(part)
	err := lifecycle.Within(s.life.Ending, s.life, s.timeout, func(ctx context.Context) error {
		return script.Send(ctx, s.rdb, "get", key).Err()
	})
	s.Failed(err)
	return err
}

// Failed counts nothing, but makes the client ask who serves what if the error of an operation says that Redis cannot.
func (s *Set) Failed(err error) {
	if Unavailable(err) {
		s.askWhoServes()
	}
}

// askWhoServes returns at once. The client asks five times a second at most, while there is anything to ask for.
func (s *Set) askWhoServes() {
	goredis.Reload(s.client)
}

// Len is how many parts there are.
func (s *Set) Len() int { return len(s.parts) }

// Part is the part that the key belongs to.
func (s *Set) Part(key string) int {
	if len(s.parts) == 1 {
		return 0
	}
	return keys.Slot(key) * len(s.parts) / keys.Slots
}

// Breaker is the breaker of a part.
func (s *Set) Breaker(part int) *Breaker { return s.parts[part] }

// Why is what a part failed with last that is not asked now; nil: all are.
func (s *Set) Why() error {
	for _, b := range s.parts {
		if last := b.last.Load(); last != nil && b.IsOpen() {
			return last.last
		}
	}
	return nil
}

// Of is the breaker of a key.
func (s *Set) Of(key string) *Breaker { return s.parts[s.Part(key)] }

// opened has the breakers that are shared, by client; see package perclient.
var opened perclient.Shared[*Set]

// Open returns the breakers that the locks, counters and values of a process on the client share: what one of them
// finds out spares the others the wait. The probes wait for the timeout of the first of them. The caller calls release
// when it asks no more.
func Open(rdb script.Processor, timeout time.Duration) (h *Set, release func()) {
	return opened.Open(rdb, func() *Set { return New(rdb, probed, timeout, nil) }, (*Set).Close)
}

// probed begins the keys that probes read. A user who may not read them gets an answer, too.
const probed = "cacheguard"
