package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
)

// A lease whose load is over is given up, although Redis took no writes, or nothing at all, when that ended: else all instances would wait for it until
// it expires.
func TestALeaseThatRedisWouldNotEndIsEndedOnceItDoes(t *testing.T) {
	t.Parallel()
	type example struct {
		begin, end func(f *fleet, p *redistest.Proxy) error
	}
	expect.Each(t, map[string]example{
		"NOREPLICAS": {configured("min-replicas-to-write", "1"), configured("min-replicas-to-write", "0")},
		"READONLY":   {follows("127.0.0.1", "1"), follows("no", "one")},
		"cut":        {refuses(true), refuses(false)},
	}, func(t *testing.T, _ string, c example) {
		s := redistest.Start(t)
		p := redistest.StartProxy(t, s.Addr())
		f := newFleetOn(t, s.Client(t), Config{RedisTimeout: time.Second, LeaseTTL: time.Hour, WaitTimeout: off}, p.Client(t), s.Client(t))
		f.listening()
		db := newSource("v")
		first := async(f.guards[0], "k", db.load)
		<-db.begun
		second := async(f.guards[1], "k", returns("v"))
		f.awaitRegistered("k", 1)
		expect.ErrorIs(t, c.begin(f, p))
		close(db.release)
		want(t, first, "v")
		redistest.Later() // the first attempts to end the lease have failed
		expect.ErrorIs(t, c.end(f, p))
		want(t, second, "v")
		want(t, async(f.guards[0], "k", returns("v")), "v")
	})
}

// They get what was loaded, or why that failed, while Redis still takes no writes.
func TestWhoWaitsGetsWhatALoadReturnsWhileRedisTakesNoWrites(t *testing.T) {
	t.Parallel()
	failing := errors.New("the source has failed")
	for name, begin := range map[string]func(*fleet, *redistest.Proxy) error{
		"NOREPLICAS": configured("min-replicas-to-write", "1"), "READONLY": follows("127.0.0.1", "1"), "NOPERM": mayNotWrite,
	} {
		for _, loads := range []error{nil, failing} {
			expect.Beside(t, fmt.Sprint(name, ", ", loads), func(t *testing.T) {
				s := redistest.Start(t)
				p := redistest.StartProxy(t, s.Addr())
				f := newFleetOn(t, s.Client(t), Config{RedisTimeout: bearing, LeaseTTL: time.Hour, WaitTimeout: off}, p.Client(t), s.Client(t))
				f.listening()
				began, release := make(chan struct{}), make(chan struct{})
				first := async(f.guards[0], "k", func(context.Context) (string, error) {
					close(began)
					<-release
					return "v", loads
				})
				<-began
				second := async(f.guards[1], "k", unwanted[string](t))
				f.awaitRegistered("k", 1)
				expect.ErrorIs(t, begin(f, p))
				close(release)
				for _, r := range []<-chan reply[string]{first, second} {
					switch r := <-r; {
					case loads == nil && (r.err != nil || r.value != "v"):
						t.Errorf("got %q, %v", r.value, r.err)
					case loads != nil && (r.err == nil || !strings.Contains(r.err.Error(), failing.Error())):
						t.Errorf("got %q, %v", r.value, r.err)
					}
				}
			})
		}
	}
}

// mayNotWrite takes the right to write from the user of all.
func mayNotWrite(f *fleet, _ *redistest.Proxy) error {
	return f.redis.ACLSetUser(context.Background(), "default", "-@write").Err()
}

// While Redis takes no writes, it grants no lease, and none is given up.
func TestAMissWhileRedisTakesNoWritesIsOneScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	f := newFleetOn(t, s.Client(t), Config{}, p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	f.listening()
	g := f.guards[0]
	mustGet(t, g, "warm", returns("v"))
	f.stored()
	expect.ErrorIs(t, configured("min-replicas-to-write", "1")(f, p))
	before := p.Commands()["evalsha"]
	for i := range 20 {
		expect.Equal(t, "value", mustGet(t, g, fmt.Sprint("k", i), returns("v")), "v")
	}
	expect.ErrorIs(t, g.Close())
	expect.Equal(t, "scripts", p.Commands()["evalsha"]-before, 20)
}

func configured(name, value string) func(*fleet, *redistest.Proxy) error {
	return func(f *fleet, _ *redistest.Proxy) error {
		return f.redis.ConfigSet(context.Background(), name, value).Err()
	}
}

func follows(host, port string) func(*fleet, *redistest.Proxy) error {
	return func(f *fleet, _ *redistest.Proxy) error {
		return f.redis.SlaveOf(context.Background(), host, port).Err()
	}
}

func refuses(is bool) func(*fleet, *redistest.Proxy) error {
	return func(_ *fleet, p *redistest.Proxy) error {
		p.Refuse(is)
		return nil
	}
}

// Of an invalidation during a load nobody has died, and nobody stood still.
func TestALoadSaysWhyItsLeaseIsGone(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(f *fleet) error{
		"by another instance": func(f *fleet) error { return f.guards[1].Invalidate(context.Background(), "k") },
		"by its own":          func(f *fleet) error { return f.guards[0].Invalidate(context.Background(), "k") },
		"and loaded by another": func(f *fleet) error {
			err := f.guards[1].Invalidate(context.Background(), "k")
			mustGet(f.t, f.guards[1], "k", returns("new"))
			return err
		},
	}, func(t *testing.T, _ string, invalidate func(f *fleet) error) {
		cfg, text := logged()
		cfg.LeaseTTL = redistest.Patience
		f := newFleet(t, standalone(t), 2, cfg)
		g, db := f.guards[0], newSource("old")
		loading := async(g, "k", db.load)
		<-db.begun
		expect.Equal(t, "invalidation", invalidate(f), nil)
		g.keeper.RenewAll()
		expect.Equal(t, "lines", len(lines(text(), "key was invalidated meanwhile")), 1)
		expect.Equal(t, "leases lost", f.events.lost.Load()+int64(g.journal.Times(watch.What(EventLeaseLost))), 0)
		close(db.release)
		want(t, loading, "old")
	})
}

func TestALeaseThatAnotherHasTakenOverIsLost(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	cfg, text := logged()
	cfg.LeaseTTL = brisk
	f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t), shared.Client(t))
	g, db := f.guards[0], newSource("old")
	refused := proxy.On(scriptOf("renew"), redistest.ReplyError("NOPERM no"))
	loading := async(g, "k", db.load)
	<-db.begun
	mustGet(t, f.guards[1], "k", returns("new"))
	expect.Equal(t, "takeovers", f.events.takeovers.Load(), 1)
	refused.Remove()
	g.keeper.RenewAll()
	expect.Equal(t, "leases lost", f.told().lost.Load(), 1)
	expect.Equal(t, "lines", len(lines(text(), "not renewed in time, or the key was invalidated meanwhile")), 1)
	close(db.release)
	want(t, loading, "old")
}
