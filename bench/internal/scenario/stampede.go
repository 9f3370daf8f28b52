package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/server"
)

// Kibibyte is the size of most values.
const Kibibyte = 1 << 10

// stampedes have the callers of all instances ask at the same moment for one key that nobody has.
func stampedes() Scenario {
	s := Scenario{
		Name: "stampede",
		About: "The callers of all instances ask at the same moment for one key that nobody has. Answers are timed from the " +
			"end of the first rebuild. Requests are reads from clients, commands include those inside scripts, all by stampede.",
		Metrics: []Metric{
			{Name: "loads", Better: Lower},
			{Name: "answer p50", Unit: "ms", Better: Lower},
			{Name: "answer p99", Unit: "ms", Better: Lower, Main: true},
			{Name: "requests", Better: Lower},
			{Name: "commands", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
		},
	}
	for _, c := range []Crowd{
		{8, 128, 50 * time.Millisecond, false},
		{8, 128, 5 * time.Millisecond, false},
		{8, 128, 200 * time.Millisecond, false},
		{1, 1000, 50 * time.Millisecond, false},
		{32, 32, 50 * time.Millisecond, false},
		{64, 1, 50 * time.Millisecond, false},
	} {
		s.Cases = append(s.Cases, c.of(rivals.Caches, len(s.Cases) == 0))
	}
	return s
}

func (c Crowd) of(libs []rivals.CacheLibrary, smoke bool) Case {
	return Case{
		Name: fmt.Sprintf("%d × %d callers, rebuild %v", c.Instances, c.Callers, c.Rebuild),
		Params: map[string]float64{
			"instances": float64(c.Instances), "callers": float64(c.Callers), "rebuild-ms": Millis(c.Rebuild),
		},
		Smoke: smoke,
		Entries: eachCache(libs, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
			return runStampedes(ctx, e, lib, c)
		}),
	}
}

// Crowd is the callers of a stampede.
type Crowd struct {
	Instances, Callers int // callers of each instance
	Rebuild            time.Duration
	Expired            bool // all instances have had the key, and its time is just over
}

// runStampedes takes means of counts, since every request counts, and percentiles of all answers.
func runStampedes(ctx context.Context, e Env, lib rivals.CacheLibrary, c Crowd) (_ Figures, err error) {
	ttl := Forever
	if c.Expired {
		ttl = time.Second // not everybody knows shorter ones
	}
	caches, err := openCaches(lib, rivals.Setup{Redis: e.Options(), TTL: ttl}, c.Instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	askers := ByInstance(caches, c.Callers)
	inboxes := 0
	if lib.Inboxes {
		inboxes = c.Instances - 1
	}
	if err := WarmUp(ctx, e.Redis, askers, inboxes); err != nil {
		return nil, err
	}
	keys, values := newKeys(int(e.For/c.Rebuild)+1, Kibibyte) // no stampede is shorter
	if c.Expired {
		if err := expire(ctx, caches, keys, values, ttl); err != nil {
			return nil, err
		}
	}
	answers, n, loads, spent := newTimes(), 0.0, 0.0, server.Usage{}
	for began := time.Now(); n == 0 || int(n) < len(keys) && time.Since(began) < e.For; n++ {
		s, err := stampedeOn(ctx, e.Redis, askers, c.Rebuild, keys[int(n)])
		if err != nil {
			return nil, err
		}
		for _, d := range s.Answers {
			answers.add(d)
		}
		loads += float64(s.Loads)
		spent = spent.Plus(s.Spent)
	}
	return Figures{
		"loads":      loads / n,
		"answer p50": answers.at(50), "answer p99": answers.at(99),
		"requests": float64(spent.Requests) / n, "commands": float64(spent.Total()) / n,
		"server CPU": Micros(spent.CPU) / n,
	}, nil
}

// ByInstance returns the instance of each caller. The callers of an instance are neighbours, because the scheduler
// starts neighbours together: in a process of their own they would not wait until those of others have started.
func ByInstance(caches []rivals.Cache, each int) []rivals.Cache {
	var askers []rivals.Cache
	for _, c := range caches {
		askers = append(askers, slices.Repeat([]rivals.Cache{c}, each)...)
	}
	return askers
}

// Stampede is what happened to one key that many asked for at the same moment.
type Stampede struct {
	Loads   int64
	Answers []time.Duration // from the end of the first rebuild, for each caller
	Spent   server.Usage
}

// expire makes every instance read all keys, and waits until they have expired.
func expire(ctx context.Context, caches []rivals.Cache, keys []string, values [][]byte, ttl time.Duration) error {
	for _, c := range caches {
		if err := Fill(ctx, c, keys, values, 1); err != nil {
			return err
		}
	}
	const late = 100 * time.Millisecond // of a clock that ticks now and then
	if !Pause(ctx, ttl+late) {
		return context.Cause(ctx)
	}
	return nil
}

// RunStampede has all askers ask for a new key.
func RunStampede(ctx context.Context, redis *server.Server, askers []rivals.Cache, rebuild time.Duration) (*Stampede, error) {
	return stampedeOn(ctx, redis, askers, rebuild, NewKey())
}

func stampedeOn(
	ctx context.Context, redis *server.Server, askers []rivals.Cache, rebuild time.Duration, key string,
) (*Stampede, error) {
	var loads, rebuilt atomic.Int64
	value, began := ValueOf(key, Kibibyte), time.Now()
	load := func(ctx context.Context) ([]byte, error) {
		loads.Add(1)
		if !Pause(ctx, rebuild) {
			return nil, context.Cause(ctx)
		}
		rebuilt.CompareAndSwap(0, int64(time.Since(began)))
		return value, nil
	}
	before, err := redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]time.Duration, len(askers))
	err = Together(ctx, len(askers), func(ctx context.Context, i int) error {
		got, err := askers[i].Get(ctx, key, load)
		answers[i] = time.Since(began)
		return Check(key, got, value, err)
	})
	if err != nil {
		return nil, err
	}
	if err := redis.Calm(ctx); err != nil { // what is stored in the background counts, too
		return nil, err
	}
	after, err := redis.Usage(ctx)
	for i := range answers {
		answers[i] = max(answers[i]-time.Duration(rebuilt.Load()), 0)
	}
	return &Stampede{Loads: loads.Load(), Answers: answers, Spent: after.Since(before)}, err
}

// WarmUp runs stampedes until one opens no connection, teaches the server no script and wakes as many waiting inboxes
// by message as it should.
func WarmUp(ctx context.Context, redis *server.Server, askers []rivals.Cache, inboxes int) error {
	const atLeast, atMost, rebuild = 2, 50, 50 * time.Millisecond
	var did map[string]int64
	for i := range atMost {
		s, err := RunStampede(ctx, redis, askers, rebuild)
		if err != nil {
			return err
		}
		did = s.Spent.Commands
		setUp := did["hello"] + did["subscribe"] + did["client|tracking"] + did["script|load"]
		if i+1 >= atLeast && setUp == 0 && (inboxes == 0 || did["publish"] >= int64(inboxes) && did["eval"] == 0) {
			return nil
		}
	}
	return fmt.Errorf("not warm after %d stampedes; the last one: %v", atMost, did)
}

const lease = time.Second // of the instance that loads, for the libraries that have leases

// slowLoader runs a load that takes longer than its lease.
func slowLoader() Scenario {
	return Scenario{
		Name: "slow loader",
		About: "4 instances with 4 callers each ask at once for one key whose load takes 2.5 s, with a lease of 1 s for whoever loads. " +
			"Answers are timed from the end of the first load; after that, each instance asks once more, which may load again.",
		Metrics: []Metric{
			{Name: "loads", Better: Lower, Main: true},
			{Name: "answer p50", Unit: "ms", Better: Lower},
			{Name: "answer p99", Unit: "ms", Better: Lower},
		},
		Cases: []Case{{
			Name: "2.5 s with a lease of 1 s", Smoke: true, Slow: true, Rounds: 3,
			Entries: eachCache(rivals.Caches, runSlowLoader),
		}},
	}
}

func runSlowLoader(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const instances, callers, takes = 4, 4, 2500 * time.Millisecond
	caches, err := openCaches(lib, rivals.Setup{Redis: e.Options(), TTL: Forever, Lease: lease}, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	db, key, answers, began := newDatabase(takes, 0), NewKey(), newTimes(), time.Now()
	value := ValueOf(key, Kibibyte)
	var rebuilt atomic.Int64
	load := func(ctx context.Context) ([]byte, error) {
		v, err := db.load(value)(ctx)
		rebuilt.CompareAndSwap(0, int64(time.Since(began)))
		return v, err
	}
	ask := func(ctx context.Context, i int) error {
		got, err := caches[i%instances].Get(ctx, key, load)
		answers.add(time.Since(began) - time.Duration(rebuilt.Load()))
		return Check(key, got, value, err)
	}
	if err := Together(ctx, instances*callers, ask); err != nil {
		return nil, err
	}
	figures := Figures{"answer p50": answers.at(50), "answer p99": answers.at(99)}
	err = Together(ctx, instances, ask)
	figures["loads"] = float64(db.loads.Load())
	return figures, err
}
