package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/distance"
)

// slowRedis makes Redis answer late, and no more, while it is asked.
func slowRedis() Scenario {
	s := Scenario{
		Name: "slow Redis",
		About: "8 instances with 2,000 Gets a second together, in an open loop, of 1,000 keys that Redis has; a load takes 5 ms, the database has 40 connections, and an instance " +
			"that knows MaxLoads may use 5 of them. After two seconds Redis' replies come later by so much, or those of one of a cluster's three nodes; the times are of Gets from a second after that on, for five seconds. " +
			"A sleep of 5 ms beside them says what the machine adds.",
		Metrics: []Metric{
			{Name: "p50", Unit: "ms", Better: Lower, Main: true},
			{Name: "p99", Unit: "ms", Better: Lower},
			{Name: "p99 of a sleep", Unit: "ms", Better: Either},
			{Name: "failed Gets", Unit: "%", Better: Lower},
			{Name: "loads a second", Better: Either},
			{Name: "loads at once, at most", Better: Lower},
		},
	}
	add := func(name string, late time.Duration, run func(context.Context, Env, rivals.CacheLibrary, time.Duration) (Figures, error)) {
		s.Cases = append(s.Cases, Case{
			Name: name, Smoke: name == "+100ms", Slow: true, Rounds: 3, Away: []time.Duration{0},
			Params: map[string]float64{"late": late.Seconds()},
			Entries: eachCache(inRedis(rivals.Caches), func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return run(ctx, e, lib, late)
			}),
		})
	}
	for _, late := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		add("+"+late.String(), late, runSlowRedis)
	}
	for _, late := range []time.Duration{0, 300 * time.Millisecond} {
		add("one node of three, +"+late.String(), late, runSlowNode)
	}
	return s
}

const (
	slowInstances = 8
	slowKeys      = 1000
	slowPerSecond = 2000
	slowLoads     = 40 // connections of the database
	slowTakes     = 5 * time.Millisecond
)

func runSlowRedis(ctx context.Context, e Env, lib rivals.CacheLibrary, late time.Duration) (Figures, error) {
	return runLate(ctx, e, lib, nil, &lateRoad{}, late)
}

// runSlowNode is as far from all nodes of a cluster, and one of them is late.
func runSlowNode(ctx context.Context, e Env, lib rivals.CacheLibrary, late time.Duration) (_ Figures, err error) {
	cluster, stop, err := server.StartCluster()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return runLate(ctx, e, lib, cluster, &lateRoad{trip: e.RoundTrip, to: cluster[0]}, late)
}

func runLate(
	ctx context.Context, e Env, lib rivals.CacheLibrary, cluster []string, road *lateRoad, late time.Duration,
) (_ Figures, err error) {
	unit := min(time.Second, 10*e.For) // but for a smoke run
	all := make([]rivals.Cache, slowInstances)
	for i := range all {
		all[i], err = lib.Open(rivals.Setup{
			Redis: e.Options(), Cluster: cluster, TTL: Forever, Entries: slowKeys, MaxLoads: slowLoads / slowInstances, Dial: road.dial,
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, all[i].Close()) }()
	}
	keys, values := newKeys(slowKeys, Kibibyte)
	if err := Fill(ctx, all[0], keys, values, 64); err != nil {
		return nil, err
	}
	db := newDatabase(slowTakes, slowLoads)
	during := func(d time.Duration) (gets, sleeps *openLoop) {
		gets = &openLoop{perSecond: slowPerSecond, random: true, length: d, ask: func(ctx context.Context, i int) error {
			k := rand.IntN(slowKeys)
			got, err := all[i%slowInstances].Get(ctx, keys[k], db.load(values[k]))
			return Check(keys[k], got, values[k], err)
		}}
		sleeps = &openLoop{perSecond: slowPerSecond / 10, random: true, length: d, ask: func(ctx context.Context, _ int) error {
			Pause(ctx, slowTakes)
			return nil
		}}
		var both sync.WaitGroup
		both.Go(func() { sleeps.run(ctx) }) // owner: runLate; ends by itself; joined below
		gets.run(ctx)
		both.Wait()
		return gets, sleeps
	}
	during(2 * unit)
	road.late(late)
	during(unit)
	before := db.loads.Load()
	db.most.Store(db.running.Load())
	l, sleeps := during(5 * unit)
	loads := db.loads.Load() - before
	road.late(0)
	return Figures{
		"p50": l.took.at(50), "p99": l.took.at(99), "p99 of a sleep": sleeps.took.at(99),
		"failed Gets":    100 * float64(l.failed.Load()) / float64(l.took.h.TotalCount()),
		"loads a second": float64(loads) / l.length.Seconds(), "loads at once, at most": float64(db.most.Load()),
	}, ctx.Err()
}

// lateRoad is the way to Redis of clients, on which what they send comes later at times.
type lateRoad struct {
	trip time.Duration // by which it comes later always
	to   string        // the address of whom it comes later to at times; empty: everybody

	mu    sync.Mutex
	delay time.Duration
	all   []*distance.Stretch
}

func (r *lateRoad) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	stretch, err := distance.NewStretch(conn, r.trip)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if r.to == "" || r.to == addr {
		stretch.Delay(r.trip + r.delay)
		r.all = append(r.all, stretch)
	}
	return &lateConn{conn, stretch}, nil
}

func (r *lateRoad) late(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = by
	for _, s := range r.all {
		s.Delay(r.trip + by)
	}
}

type lateConn struct {
	net.Conn
	road *distance.Stretch
}

func (c *lateConn) Write(p []byte) (int, error) { return c.road.Write(p) }

func (c *lateConn) Close() error {
	c.road.Stop()
	return c.Conn.Close()
}
