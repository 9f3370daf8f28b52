package sim

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/memory"
)

const (
	rows, tags   = 6, 2
	moving       = 3 // tags of versions: a read cannot know which of them a row has now
	redisTimeout = 200 * time.Millisecond
	leaseTTL     = 2 * time.Second
	localTTL     = 8 * time.Second
	maxLag       = time.Second // of local tiers, as by default
	shortTTL     = 500 * time.Millisecond
	longestLoad  = 60 * time.Millisecond
	longestPause = 200 * time.Millisecond // of a worker, between two operations
	longestStop  = 3 * time.Second        // of an instance that stands still
	longestCall  = 30 * time.Second       // of all that wait for each other
	longestRun   = time.Minute            // until it is told which run hangs
	workers      = 2                      // of an instance
	operations   = 4                      // of a worker
)

// Result is what came of a run.
type Result struct {
	Wrong   []string // promises that were broken
	Journal string   // what happened when, and the hash of all messages
}

// plan is what a seed fixes for the whole run.
type plan struct {
	instances int
	local     bool
	faults    bool
	latency   time.Duration
	together  bool          // a GetMany loads what it misses with one call: CacheConfig.LoadMany
	patient   bool          // values are soon stale: StaleFor and Patience
	partly    bool          // the cache at times serves only some keys
	narrow    bool          // one load at a time: MaxLoads
	late      bool          // calls load beside a Redis that is soon too slow for them: HedgeAfter
	slow      bool          // workers pause for so long that what a tier has outlives MaxLag
	maxLag    time.Duration // of local tiers

	pause      time.Duration // of a worker between two operations, and about of those who make things go wrong, at most
	operations int           // of a worker
}

// slowMessage makes a Redis slow beside loads.
const slowMessage = 20 * time.Millisecond

func planOf(seed uint64) (plan, *rand.Rand) {
	random := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		instances: 2 + random.IntN(2), local: random.IntN(2) == 0, faults: random.IntN(4) > 0,
		latency: []time.Duration{100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}[random.IntN(3)], maxLag: maxLag,
	}
	p.together, p.patient, p.partly = random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(2) == 0
	p.narrow = random.IntN(2) == 0
	if p.late = random.IntN(3) == 0; p.late {
		p.latency = slowMessage
	}
	p.pause, p.operations = longestPause, operations
	if p.slow = p.local && random.IntN(2) == 0; p.slow {
		p.pause, p.operations = 2*maxLag, 2*operations
	}
	return p, random
}

// lag is by how much the reads of other instances may be behind.
func (p plan) lag() time.Duration {
	switch {
	case !p.local:
		return 0
	case p.patient: // stale, while Redis does not answer
		return localTTL
	}
	return maxLag
}

// Run runs the fleet that the seed draws, with cacheguard.
func Run(t *testing.T, seed uint64) (r Result) { return run(t, seed, openGuarded) }

type open func(rdb *redis.Client, p plan, name string, load load) (store, error)

func run(t *testing.T, seed uint64, open open) (r Result) {
	t.Helper()
	truth := make(chan *truth, 1)
	defer time.AfterFunc(longestRun, func() { // by the clock of the world outside; owner: run; it waits for nothing
		t.Logf("seed %d still runs after %v:\n%s", seed, longestRun, (<-truth).told())
	}).Stop()
	synctest.Test(t, func(t *testing.T) {
		p, random := planOf(seed)
		w := &world{plan: p, truth: newTruth(rows), redis: openRedis(t), record: newRecord()}
		truth <- w.truth
		w.truth.note("seed %d: %d instances, local tiers %t, faults %t, messages take %v; loads together %t, patience %t, partly %t, narrow %t, late %t, slow %t",
			seed, p.instances, p.local, p.faults, p.latency, p.together, p.patient, p.partly, p.narrow, p.late, p.slow)
		for i := range p.instances {
			w.add(t, i, random.Uint64(), open)
		}
		w.play(random)
		w.closing(t)
		r = Result{w.truth.wrong, w.truth.told() + w.record.String()}
	})
	return r
}

// openRedis opens the Redis of a run, in the bubble, whose clock it reads.
func openRedis(t *testing.T) *redis.Client {
	t.Helper()
	rdb, err := memory.New(memory.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return rdb
}

type world struct {
	plan      plan
	truth     *truth
	record    record
	redis     *redis.Client // of package memory
	instances []*instance
	loads     sync.Mutex
}

func (w *world) add(t *testing.T, i int, seed uint64, open open) {
	t.Helper()
	net := newNetwork(w, rand.New(rand.NewPCG(seed, 2)))
	o := &redis.Options{
		PoolSize: 1000, // nobody waits for a turn: go-redis takes the timers for that from all bubbles
		Dialer:   net.Dial, Protocol: 3, DisableIdentity: true, MaxRetries: 1, MinRetryBackoff: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if f := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize"); f.IsValid() {
		f.SetInt(-1) // nor in a pool that only pipelines have, since 9.22
	}
	rdb := redis.NewClient(o)
	name := string(rune('A' + i))
	random := rand.New(rand.NewPCG(seed, 3))
	store, err := open(rdb, w.plan, name, loading(w.truth, func() *rand.Rand {
		w.loads.Lock()
		defer w.loads.Unlock()
		return rand.New(rand.NewPCG(random.Uint64(), 4))
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.instances = append(w.instances, &instance{name: name, net: net, rdb: rdb, store: store})
}

// play lets the workers work while things go wrong, and reads everything when all is well again.
func (w *world) play(random *rand.Rand) {
	ctx := context.Background()
	var working, harming sync.WaitGroup
	over := make(chan struct{})
	for _, in := range w.instances {
		for n := range workers { // owner: play; they end with their operations; joined below
			worker := &worker{world: w, in: in, random: rand.New(rand.NewPCG(random.Uint64(), uint64(n)))}
			working.Go(func() { worker.work(ctx) })
		}
		if w.plan.slow { // the same; it ends with over
			looker := &worker{world: w, in: in, random: rand.New(rand.NewPCG(random.Uint64(), workers))}
			harming.Go(func() { looker.look(ctx, over) })
		}
	}
	if w.plan.faults {
		harm := rand.New(rand.NewPCG(random.Uint64(), 5))
		harming.Go(func() { w.harm(harm, over) }) // the same
	}
	working.Wait()
	close(over)
	harming.Wait()
	w.heal()
	time.Sleep(max(w.plan.lag(), 2*leaseTTL) + 10*time.Second) // what is pending is sent, and intents of the dead expire
	for _, in := range w.instances {
		if in.dead {
			continue
		}
		for row := range rows {
			if got, err := in.get(ctx, row); err != nil || got != w.truth.read(row) && w.truth.settled(row) {
				w.truth.complain("in the end %s reads %d (%v) of row %d, the database has %d", in.name, got, err, row, w.truth.read(row))
			}
		}
	}
}

// closing ends everything; a Close that hangs is a deadlock of the bubble.
func (w *world) closing(t *testing.T) {
	t.Helper()
	for _, in := range w.instances {
		began := time.Now()
		if err := in.close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > longestCall {
			w.truth.complain("Close of %s took %v", in.name, took)
		}
		_ = in.rdb.Close() // it may have lost its connections
		in.net.end()
	}
	if err := w.redis.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(2 * time.Second) // until go-redis' goroutines have noticed
}
