package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/cacheguard"
)

// GiveUp is a crowd that asks at once for keys that nobody has, more than can be loaded before it gives up. A bystander reads
// a key that is there, all the while and for a moment after.
type GiveUp struct {
	Keys, Instances int // every instance is asked for every key
	Load, Patience  time.Duration
	After           time.Duration // for which the bystander stays
	MaxLoads        int           // of an instance at once; 0: the library's default
	Lease           time.Duration // 0: the library's default
	Bubble          bool          // it runs in one of testing/synctest
	Hedges          bool          // as the library does by default, where Redis is further away than the database
}

// GaveUp is the outcome.
type GaveUp struct {
	Answered  int64 // callers
	Wasted    int64 // callers whose own load had ended before their time, and who were not answered
	ForNobody int64 // loads that began after their context had ended
	Again     int64 // loads of keys that had been loaded
	Loads     int64 // that returned a value
	Longest   time.Duration
	Returned  *Distribution // from the return of a caller's own load to its answer

	RedisErrors, Openings int64 // of ours alone: reported errors, and how often Redis was left alone

	Bystander       *Distribution
	Hits, Otherwise int64 // of the bystander
}

// Distribution is of durations.
type Distribution struct{ *times }

// crowds give up.
func crowds() Scenario {
	s := Scenario{
		Name: "crowd",
		About: "Callers ask at once for keys that nobody has, more than can be loaded (64 at once, 20 ms each, where a library bounds that) before their " +
			"contexts end. A bystander on the first instance reads a key that is there 200 times a second, until 2 s after. \"Not hit\": the share " +
			"of these reads that were loaded or failed. \"Wasted\": callers whose load had returned in time, and who were not " +
			"answered. \"For nobody\": loads that began after their context had ended. \"Again\": loads of keys that had been loaded. " +
			"\"Longest\": a caller's, whose context allows no more than its patience. \"Load to answer\": from the return of a caller's own load, " +
			"which is when it could have been answered. \"Hedging\": as is the default, where Redis is further away than the database.",
		Metrics: []Metric{
			{Name: "bystander not hit", Unit: "%", Better: Lower, Main: true},
			{Name: "bystander p99", Unit: "ms", Better: Lower},
			{Name: "answered", Better: Higher},
			{Name: "wasted", Better: Lower},
			{Name: "for nobody", Better: Lower},
			{Name: "again", Better: Lower},
			{Name: "loads", Better: Lower},
			{Name: "longest", Unit: "s", Better: Lower},
			{Name: "load to answer, p50", Unit: "ms", Better: Lower},
			{Name: "load to answer, p99", Unit: "ms", Better: Lower},
			{Name: "load to answer, longest", Unit: "ms", Better: Lower},
			{Name: "Redis errors", Better: Lower},
			{Name: "breaker openings", Better: Lower},
		},
	}
	add := func(name string, g GiveUp, smoke bool, away ...time.Duration) {
		s.Cases = append(s.Cases, Case{
			Name:   name,
			Params: map[string]float64{"keys": float64(g.Keys), "instances": float64(g.Instances), "patience-ms": Millis(g.Patience)},
			Smoke:  smoke, Slow: true, Rounds: 2, Away: away,
			Entries: eachCache(inRedis(rivals.Caches), func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return g.figures(ctx, e, lib)
			}),
		})
	}
	add("5,000 keys, patience of 1 s", Impatient, true, 4*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond)
	add("4,000 keys, patience of 3 s", Loaded, false, 50*time.Millisecond)
	add("4,000 keys, patience of 3 s, hedging", Hedging, false, 50*time.Millisecond)
	add("5,000 keys, patience of 1 s, hedging", Hurried, false, 50*time.Millisecond)
	add("4,000 keys on 2 instances, patience of 3 s, lease of 200 ms", Taken, false, 50*time.Millisecond)
	return s
}

const moment = 2 * time.Second // in which what was left behind would show

// The crowds of the scenario, and of the tests that count.
var (
	Impatient = GiveUp{Keys: 5000, Instances: 1, Load: 20 * time.Millisecond, Patience: time.Second, After: moment, MaxLoads: 64}
	Loaded    = GiveUp{Keys: 4000, Instances: 1, Load: 20 * time.Millisecond, Patience: 3 * time.Second, After: moment, MaxLoads: 64}
	Hedging   = GiveUp{Keys: 4000, Instances: 1, Load: 20 * time.Millisecond, Patience: 3 * time.Second, After: moment, MaxLoads: 64, Hedges: true}
	Hurried   = GiveUp{Keys: 5000, Instances: 1, Load: 20 * time.Millisecond, Patience: time.Second, After: moment, MaxLoads: 64, Hedges: true}
	Taken     = GiveUp{
		Keys: 4000, Instances: 2, Load: 20 * time.Millisecond, Patience: 3 * time.Second, After: moment, MaxLoads: 64, Lease: 200 * time.Millisecond,
	}
)

func (g GiveUp) figures(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
	if e.For < 100*time.Millisecond { // a smoke run
		g.Keys, g.Patience, g.After = g.Keys/10, g.Patience/10, g.After/10
	}
	was, err := g.Run(ctx, e.Options(), e.RoundTrip, lib)
	if err != nil {
		return nil, err
	}
	f := Figures{
		"bystander not hit": 100 * float64(was.Otherwise) / float64(was.Hits+was.Otherwise),
		"bystander p99":     was.Bystander.at(99),
		"answered":          float64(was.Answered), "wasted": float64(was.Wasted),
		"for nobody": float64(was.ForNobody), "again": float64(was.Again), "loads": float64(was.Loads), "longest": was.Longest.Seconds(),
		"load to answer, p50": was.Returned.at(50), "load to answer, p99": was.Returned.at(99), "load to answer, longest": was.Returned.longest(),
	}
	if lib.Ours {
		f["Redis errors"], f["breaker openings"] = float64(was.RedisErrors), float64(was.Openings)
	}
	return f, nil
}

// Run is one crowd on new instances of a library, whose Redis is at options, a round trip away.
func (g GiveUp) Run(
	ctx context.Context, options *redis.Options, roundTrip time.Duration, lib rivals.CacheLibrary,
) (_ *GaveUp, err error) {
	c := crowd{GiveUp: g, roundTrip: roundTrip, was: GaveUp{Bystander: &Distribution{newTimes()}, Returned: &Distribution{newTimes()}}}
	c.keys, c.values = newKeys(g.Keys, Kibibyte)
	c.loads = make([]atomic.Int64, g.Keys)
	caches, err := openCaches(lib, rivals.Setup{
		Redis: options, TTL: Forever, Lease: g.Lease, MaxLoads: g.MaxLoads, Entries: g.Keys,
		Waits: !g.Hedges, // or its Gets load, where Redis is further away than the database
		Observers: []cacheguard.Observer{cacheguard.ObserverFunc(func(_ context.Context, e cacheguard.Event) {
			switch {
			case e.What == cacheguard.EventRedisError:
				atomic.AddInt64(&c.was.RedisErrors, 1)
			case e.What == cacheguard.EventBreaker && e.On:
				atomic.AddInt64(&c.was.Openings, 1)
			}
		})},
	}, g.Instances)
	if err != nil {
		return nil, err
	}
	err = c.run(ctx, caches)
	err = errors.Join(err, CloseAll(caches)) // what goes on in the background has ended then
	return &c.was, err
}

// crowd is one that runs.
type crowd struct {
	GiveUp
	roundTrip time.Duration
	keys      []string
	values    [][]byte
	loads     []atomic.Int64 // that returned a value, by key
	was       GaveUp
}

func (c *crowd) run(ctx context.Context, caches []rivals.Cache) error {
	warm, values := newKeys(64, Kibibyte)
	for _, cache := range caches {
		if err := Fill(ctx, cache, warm, values, len(warm)); err != nil { // connections and scripts
			return err
		}
	}
	beside, stop := context.WithCancel(ctx)
	var bystander sync.WaitGroup
	bystander.Go(func() { c.read(beside, caches[0], warm[0], values[0]) }) // owner: run; stop: stop; joined below
	defer bystander.Wait()
	defer stop()
	err := Together(ctx, len(caches)*c.Keys, func(ctx context.Context, i int) error {
		return c.ask(ctx, caches[i/c.Keys], i%c.Keys)
	})
	Pause(ctx, c.After)
	return errors.Join(err, ctx.Err())
}

// ask is one caller of the crowd. It tells a wrong value from none.
func (c *crowd) ask(ctx context.Context, cache rivals.Cache, k int) error {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(c.Patience))
	defer cancel()
	var loaded atomic.Int64 // when first, after began
	got, err := cache.Get(ctx, c.keys[k], func(inner context.Context) ([]byte, error) {
		if inner.Err() != nil && time.Since(began) > c.Patience+c.near() {
			atomic.AddInt64(&c.was.ForNobody, 1)
		}
		if !Pause(inner, c.Load) {
			return nil, context.Cause(inner)
		}
		if c.loads[k].Add(1) > 1 {
			atomic.AddInt64(&c.was.Again, 1)
		}
		atomic.AddInt64(&c.was.Loads, 1)
		loaded.CompareAndSwap(0, int64(time.Since(began)))
		return c.values[k], nil
	})
	took := time.Since(began)
	for longest := (*int64)(&c.was.Longest); ; {
		if most := atomic.LoadInt64(longest); int64(took) <= most || atomic.CompareAndSwapInt64(longest, most, int64(took)) {
			break
		}
	}
	at := time.Duration(loaded.Load())
	if err == nil {
		atomic.AddInt64(&c.was.Answered, 1)
		if at > 0 {
			c.was.Returned.add(took - at)
		}
		return Check(c.keys[k], got, c.values[k], nil)
	}
	if at > 0 && at < c.Patience-c.near() {
		atomic.AddInt64(&c.was.Wasted, 1)
	}
	return nil
}

// near is how close to the end of a context nothing counts: what is under way then may go either way, on a busy machine too.
func (c *crowd) near() time.Duration {
	const busy = 50 * time.Millisecond
	return max(c.roundTrip, busy)
}

var errMissed = errors.New("the bystander's key was loaded")

// read is the bystander.
func (c *crowd) read(ctx context.Context, cache rivals.Cache, key string, value []byte) {
	const perSecond = 200
	l := openLoop{perSecond: perSecond, bubble: c.Bubble, length: TooLong, took: c.was.Bystander.times, ask: func(ctx context.Context, _ int) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TooLong) // a caller that has asked waits for the answer
		defer cancel()
		got, err := cache.Get(ctx, key, func(context.Context) ([]byte, error) { return nil, errMissed })
		if err := Check(key, got, value, err); err != nil {
			return fmt.Errorf("bystander: %w", err)
		}
		return nil
	}}
	l.run(ctx)
	c.was.Otherwise = l.failed.Load()
	c.was.Hits = l.took.h.TotalCount() - c.was.Otherwise
}
