package day

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/semaphore"
)

const settled = 60 // seconds after which the Guards' caches are as full as they get

// small is a plan that Guards can live through.
func small() Plan {
	return Plan{
		Seconds: 240, Instances: 4, Nodes: 1, TTL: 30 * time.Second, Jitter: 0.1, Load: 20 * time.Millisecond,
		Kinds: []Kind{{
			Keys: 300, Zipf: 0.9, Gets: func(int) float64 { return 40 }, Writes: func(int) float64 { return 0.5 }, Cleared: []int{100, 170},
		}},
	}
}

func TestTheModelAgreesWithGuards(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Plan){
		"as usual":     func(*Plan) {},
		"silent Redis": func(p *Plan) { p.Silent = []Silence{{120, 140}, {200, 215}} },
		"permits":      func(p *Plan) { p.Fleet, p.Load = 2, 120*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := small()
			change(&plan)
			var want lived
			for _, s := range Cacheguard(plan, Prices{})[settled:] {
				want.loads += s.Loads
				want.requests += s.Requests
				want.atOnce = max(want.atOnce, s.AtOnce)
			}
			synctest.Test(t, func(t *testing.T) {
				got := live(t, plan)
				t.Logf("%+v, computed %+v", got, want)
				if math.Abs(got.loads-want.loads) > 0.1*want.loads || math.Abs(got.requests-want.requests) > 0.1*want.requests {
					t.Errorf("Guards have %+v, the model %+v", got, want)
				}
				if plan.Fleet > 0 && (got.atOnce != plan.Fleet || want.atOnce != plan.Fleet) {
					t.Errorf("permits were for %v: Guards have %v at once, the model %v", plan.Fleet, got.atOnce, want.atOnce)
				}
			})
		})
	}
}

// lived is what happened once the caches were settled.
type lived struct {
	loads, requests float64
	atOnce          float64 // the most loads at a moment
}

// counting counts the commands of a client that Gets and invalidations take.
type counting struct{ n atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.count(cmd)
		}
		return next(ctx, cmds)
	}
}

func (c *counting) count(cmd redis.Cmder) {
	if slices.Contains([]string{"get", "mget", "evalsha", "eval"}, cmd.Name()) {
		c.n.Add(1)
	}
}

// live has Guards live through the plan's only kind, and returns what they do once they are settled.
func live(t *testing.T, plan Plan) (total lived) {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	var loaded, running, most atomic.Int64
	var sent counting
	load := func(context.Context, int) (int, error) {
		loaded.Add(1)
		now := running.Add(1)
		defer running.Add(-1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); {
			before = most.Load()
		}
		time.Sleep(plan.Load)
		return 1, nil
	}
	var road distance.Road
	dial := func(context.Context, string, string) (net.Conn, error) {
		far, err := server.Dial()
		return road.Connect(far), err
	}
	var clients []*redis.Client
	var guards []*cacheguard.Guard
	var caches []*cacheguard.Cache[int, int]
	var limiters []*semaphore.Limiter
	for range plan.Instances {
		rdb := redis.NewClient(&redis.Options{
			Dialer: dial, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		rdb.AddHook(&sent)
		cfg := cacheguard.Config{TTL: plan.TTL, Jitter: plan.Jitter}
		if plan.Fleet > 0 {
			limiter, err := semaphore.NewLimiter(rdb, "fleet", semaphore.Config{Permits: int(plan.Fleet)})
			if err != nil {
				t.Fatal(err)
			}
			limiters, cfg.Limiter = append(limiters, limiter), limiter
		}
		guard, err := cacheguard.New(rdb, cfg)
		if err != nil {
			t.Fatal(err)
		}
		cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, int]{Name: "product", Load: load})
		if err != nil {
			t.Fatal(err)
		}
		clients, guards, caches = append(clients, rdb), append(guards, guard), append(caches, cache)
	}
	var calls sync.WaitGroup
	call := func(f func(ctx context.Context) error) {
		calls.Go(func() { // owner: the test; it ends with its call; joined below
			if err := f(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	random, key := rand.New(rand.NewPCG(1, 2)), drawing(plan.Kinds[0])
	for second := range plan.Seconds {
		if second == settled {
			calls.Wait()
			total.loads, total.requests = -float64(loaded.Load()), -float64(sent.n.Load())
			most.Store(0)
		}
		silent := plan.isSilent(second)
		if server.SetError(""); silent {
			server.SetError("LOADING Redis is loading the dataset in memory")
		}
		if slices.Contains(plan.Kinds[0].Cleared, second) {
			call(caches[0].InvalidateAll)
		}
		if random.Float64() < plan.Kinds[0].Writes(second) {
			id := key(random)
			call(func(ctx context.Context) error {
				err := caches[0].Invalidate(ctx, id)
				if silent {
					return nil // it is sent when Redis is back
				}
				return err
			})
		}
		gets := int(plan.Kinds[0].Gets(second))
		for range gets {
			cache, id := caches[random.IntN(len(caches))], key(random)
			call(func(ctx context.Context) error { _, err := cache.Get(ctx, id); return err })
			time.Sleep(time.Second / time.Duration(gets))
		}
	}
	calls.Wait()
	total.loads, total.requests = total.loads+float64(loaded.Load()), total.requests+float64(sent.n.Load())
	total.atOnce = float64(most.Load())
	for i, guard := range guards {
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
		if len(limiters) > 0 {
			_ = limiters[i].Close() // always nil
		}
		_ = clients[i].Close() // nothing is under way
	}
	server.Close()
	road.Wait()
	time.Sleep(2 * time.Second) // until go-redis' goroutines have noticed
	return total
}

// drawing draws keys by their popularity.
func drawing(k Kind) func(*rand.Rand) int {
	sums, sum := make([]float64, k.Keys), 0.0
	for rank := range sums {
		sum += math.Pow(float64(rank+1), -k.Zipf)
		sums[rank] = sum
	}
	return func(random *rand.Rand) int {
		i, _ := slices.BinarySearch(sums, random.Float64()*sum)
		return i
	}
}

func TestTheDatabaseIsAskedLittle(t *testing.T) {
	t.Parallel()
	plan := small()
	plan.Fleet, plan.Lost, plan.Silent = 0.1, []int{120}, []Silence{{200, 210}} // five loads a second
	ours, theirs := Cacheguard(plan, Prices{}), ByHand(plan, Prices{})
	for s := range ours {
		if o := ours[s]; o.Loads > 5.001 || o.AtOnce > 0.1 || o.Waits < 0 {
			t.Fatalf("second %d: %+v", s, o)
		}
	}
	if ours[205].Waits == 0 || theirs[205].Loads < 39 { // no node answers
		t.Errorf("without Redis: %+v, by hand %+v", ours[205], theirs[205])
	}
	if theirs[100].Loads <= 2*theirs[90].Loads {
		t.Errorf("all keys were invalidated, by hand: %+v, before %+v", theirs[100], theirs[90])
	}
}

func TestPricesAreThoseOfTheReport(t *testing.T) {
	t.Parallel()
	p, err := ReadPrices("../../results/scale/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	if p.Few.Get >= p.Few.Acquire || p.Few.Acquire >= p.Lone || p.Many.Get < p.Few.Get {
		t.Errorf("%+v", p)
	}
}

func TestClassesHaveAllKeysAndGets(t *testing.T) {
	t.Parallel()
	for _, zipf := range []float64{0.4, 0.9} {
		keys, gets := 0.0, 0.0
		for _, c := range (Kind{Keys: 100_000, Zipf: zipf}).classes(10) {
			keys += c.keys
			gets += c.keys * c.share
		}
		if keys != 100_000 || math.Abs(gets-1) > 0.001 {
			t.Errorf("Zipf %v: %v keys with %v of the Gets", zipf, keys, gets)
		}
	}
}
