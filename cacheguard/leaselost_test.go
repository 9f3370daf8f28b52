package cacheguard

import (
	"context"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
)

// Of an invalidation during a load nobody has died, and nobody stood still.
func TestALoadSaysWhyItsLeaseIsGone(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(f *fleet) error{
		"by another instance": func(f *fleet) error { return f.guards[1].Invalidate(context.Background(), "k") },
		"by its own":          func(f *fleet) error { return f.guards[0].Invalidate(context.Background(), "k") },
		"and loaded by another": func(f *fleet) error {
			err := f.guards[1].Invalidate(context.Background(), "k")
			mustGet(f.t, f.guards[1], "k", returns("new"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
	expect.Equal(t, "leases lost", f.events.lost.Load(), 1)
	expect.Equal(t, "lines", len(lines(text(), "not renewed in time, or the key was invalidated meanwhile")), 1)
	close(db.release)
	want(t, loading, "old")
}
