package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/distance"
)

// outage kills Redis under load, and starts it again.
func outage() Scenario {
	return Scenario{
		Name: "Redis death and return",
		About: "A redis-server of its own is killed under 500 Gets a second for 20 keys in an open loop, and started again, empty, " +
			"2 s later; a load takes 20 ms. \"first hit\": from the restart until Redis has answered a read with a value.",
		Metrics: []Metric{
			{Name: "failed Gets", Unit: "%", Better: Lower},
			{Name: "Get p99", Unit: "ms", Better: Lower, Main: true},
			{Name: "longest", Unit: "ms", Better: Lower},
			{Name: "loads", Better: Either},
			{Name: "loads at once, at most", Better: Lower},
			{Name: "first hit", Unit: "ms", Better: Lower},
		},
		Cases: []Case{{
			Name: "2 s without Redis", Smoke: true, Slow: true, Rounds: 3,
			Entries: eachCache(inRedis(rivals.Caches), runOutage),
		}},
	}
}

func runOutage(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const n, before = 20, 500 * time.Millisecond
	without := min(2*time.Second, 20*e.For) // long enough for all breakers and time-outs, but for a smoke run
	after := without
	redis, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	own, near, err := e.ownServer(redis)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, near()) }()
	c, err := lib.Open(rivals.Setup{Redis: own.Options(), TTL: Forever})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	keys, values := newKeys(n, Kibibyte)
	if err := Fill(ctx, c, keys, values, 64); err != nil {
		return nil, err
	}
	db := newDatabase(20*time.Millisecond, 0)
	l := openLoop{perSecond: 500, length: before + without + after, ask: func(ctx context.Context, _ int) error {
		k := rand.IntN(n)
		got, err := c.Get(ctx, keys[k], db.load(values[k]))
		return Check(keys[k], got, values[k], err)
	}}
	asked := make(chan struct{})
	go func() { // owner: runOutage; ends by itself; joined by receiving
		defer close(asked)
		l.run(ctx)
	}()
	Pause(ctx, before)
	redis.Kill()
	Pause(ctx, without)
	redis.Restart()
	first := firstHit(ctx, redis, after)
	<-asked
	figures := Figures{
		"failed Gets": 100 * float64(l.failed.Load()) / (l.length.Seconds() * float64(l.perSecond)),
		"Get p99":     l.took.at(99), "longest": l.took.longest(),
		"loads": float64(db.loads.Load()), "loads at once, at most": float64(db.most.Load()),
	}
	if first > 0 {
		figures["first hit"] = Millis(first)
	}
	return figures, ctx.Err()
}

// firstHit waits until the server has answered a read with a value; 0 if that takes longer than atMost.
func firstHit(ctx context.Context, redis *server.Server, atMost time.Duration) time.Duration {
	for began := time.Now(); time.Since(began) < atMost && Pause(ctx, 5*time.Millisecond); {
		if u, err := redis.Usage(ctx); err == nil && u.Hits > 0 {
			return time.Since(began)
		}
	}
	return 0
}

// ownServer is e with another server at the same distance; near ends the proxy.
func (e Env) ownServer(s *server.Server) (own Env, near func() error, err error) {
	own = Env{Redis: s, RoundTrip: e.RoundTrip, For: e.For}
	if e.RoundTrip == 0 {
		return own, func() error { return nil }, nil
	}
	p, err := distance.Apart(s.Options().Addr, e.RoundTrip)
	if err != nil {
		return own, nil, err
	}
	own.Through = p.Addr()
	return own, p.Close, nil
}
