package consistency

import (
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// storm is a run: processes, each behind a proxy, and what happens to them.
type storm struct {
	*testing.T
	kind     string
	database string
	rows     rows
	redis    *redistest.Server
	proxies  [processes]*redistest.Proxy
	running  [processes]*process
	all      []*process

	restarts []span
	evicted  []eviction // intents
	counts
}

// counts are of what is only counted.
type counts struct{ cuts, faults, evictions int }

// eviction is a key of Redis that was lost, of an item.
type eviction struct {
	span
	key int
}

// process is a child, and what happened to it.
type process struct {
	*redistest.Process
	log    string
	pauses []span
	killed int64 // 0: it was not
}

// span is from one moment to another.
type span struct{ from, to int64 }

// newStorm starts the processes.
func newStorm(t *testing.T, kind string) *storm {
	s := &storm{T: t, kind: kind, redis: redistest.Start(t), database: startPostgres(t)}
	s.rows = openRows(t, s.database)
	s.rows.create(t)
	for i := range processes {
		s.proxies[i] = redistest.StartProxy(t, s.redis.Addr())
	}
	s.begin()
	return s
}

func (s *storm) begin() {
	for i := range processes {
		s.spawn(i)
	}
}

func (s *storm) spawn(i int) {
	p := &process{log: filepath.Join(s.TempDir(), rand.Text())}
	p.Process = redistest.Child(s, "TestChildThatReadsAndWrites",
		"KIND="+s.kind, "DATABASE_URL="+s.database+" application_name=child", "ADDR="+s.proxies[i].Addr(), "LOG="+p.log)
	s.running[i] = p
	s.all = append(s.all, p)
}

// rage does harm for a time. Redis restarts and processes die at random, but each in its turn, so that a short run has
// some of everything.
func (s *storm) rage(long time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var wire sync.WaitGroup
	defer wire.Wait()
	wire.Go(func() { s.disturb(ctx) }) // owner: the test; stop: ctx; joined above
	for turn := 0; ctx.Err() == nil; turn++ {
		pause(long / 8)
		i := mrand.N(processes)
		p := s.running[i]
		if turn%2 == 1 {
			p.killed = now()
			p.Kill()
			s.spawn(i)
			continue
		}
		from := now()
		p.Pause()
		pause(min(5*time.Second, duration()/4))
		p.Resume()
		p.pauses = append(p.pauses, span{from, now()})
	}
	wire.Wait()
	s.awaitSome() // on a busy machine, nothing may have come through until now
}

// awaitSome awaits that a value was read, and one updated.
func (s *storm) awaitSome() {
	redistest.Await(s, "something is read and updated", func() bool {
		history := s.history()
		return len(only(history, "get")) > 0 && len(only(history, "updated")) > 0
	})
}

// disturb disturbs Redis and the wire.
func (s *storm) disturb(ctx context.Context) {
	commands := []string{"evalsha", "evalsha", "evalsha", "get", "mget", "del", "set"}
	faults := []redistest.Fault{
		redistest.DropReply, redistest.SwallowReply, redistest.CutBefore, redistest.Hold, redistest.HoldReply,
	}
	rdb := s.redis.Client(s)
	for turn := 1; ctx.Err() == nil; turn++ {
		s.evict(rdb)
		p := s.proxies[mrand.N(processes)]
		rule := p.On(redistest.Command(commands[mrand.N(len(commands))]), faults[mrand.N(len(faults))]).Times(1 + mrand.N(3))
		pause(100 * time.Millisecond)
		s.faults += rule.Count()
		rule.Remove()
		if turn%10 == 0 {
			p.Cut()
			s.cuts++
		}
		if turn%25 == 0 {
			from := now()
			s.redis.Restart()
			s.restarts = append(s.restarts, span{from, now()})
		}
	}
}

// evict makes Redis lose a few keys of any kind: values, leases, locks, intents.
func (s *storm) evict(rdb *redis.Client) {
	ctx := context.Background()
	for range 8 {
		from := now()
		name := rdb.RandomKey(ctx).Val()
		if rdb.Del(ctx, name).Val() == 0 {
			continue // or Redis has been restarted
		}
		s.evictions++
		var key int
		if n, _ := fmt.Sscanf(name, nameOf("k%d")+":intent", &key); n == 1 && strings.HasSuffix(name, "intent") {
			s.evicted = append(s.evicted, eviction{span{from, now()}, key})
		}
	}
}

// stop lets everybody finish.
func (s *storm) stop() {
	s.Helper()
	for _, p := range s.running {
		p.WriteLine("stop")
	}
	for _, p := range s.running {
		if err := p.Wait(); err != nil {
			s.Error(err)
		}
	}
}

// kill kills all processes in whatever they do, and lets the database end what they have begun.
func (s *storm) kill() {
	s.Helper()
	for _, p := range s.running {
		p.killed = now()
		p.Kill()
	}
	redistest.Await(s, "the database to notice that everybody is dead", func() bool {
		return s.rows.clients(s.T) == 0
	})
}

// history is what all have done.
func (s *storm) history() (history []event) {
	s.Helper()
	for _, p := range s.all {
		history = append(history, readLog(s.T, p.log)...)
	}
	return history
}
