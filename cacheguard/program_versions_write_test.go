package cacheguard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestALoadOfOneVersionIsNotStoredWhenAnotherInvalidatesAndItsWaitersGoOn(t *testing.T) {
	t.Parallel()
	for name, build := range arenasOfVersions {
		for by := range 3 {
			expect.Beside(t, fmt.Sprint(name, ", by ", by), func(t *testing.T) {
				f := newFleet(t, build(t), 4, steady).listening()
				db := newSource("old")
				all := rollout(t, f, newRow("of others").load)
				a := newRelease(t, f.guards[3], 3, db.load, makePriced) // a version of its own
				b := newRelease(t, newGuardBeside(t, f, steady), 3, db.load, makePriced)
				first := a.async()
				<-db.begun
				second := b.async()
				f.awaitInboxes(protocol.LeaseKey(a.value(1)), 1)
				db.value.Store("new")
				expect.ErrorIs(t, all[by].invalidate(1), nil)
				<-db.begun // of b, though a's has not ended: it was told
				db.release <- struct{}{}
				db.release <- struct{}{}
				want(t, first, "old") // it had begun before
				want(t, second, "new")
				f.stored()
				awaitStored(t, b.guard)
				a.expect(f, 1, "new")
				b.expect(f, 1, "new")
				expect.Equal(t, "loads", db.loads.Load(), 2)
				expect.Equal(t, "refused", f.events.rejected.Load(), 1)
			})
		}
	}
}

// newGuardBeside is one more instance of the fleet, on the same Redis. Its hooks count nothing.
func newGuardBeside(t *testing.T, f *fleet, cfg Config) *Guard {
	t.Helper()
	cfg.Prefix = f.guards[0].cfg.Prefix
	g := newGuard(t, f.redis, cfg)
	g.inbox.Start()
	redistest.Await(t, "its inbox is subscribed", func() bool { return g.inbox.Address() != "" })
	return g
}

func awaitStored(t *testing.T, g *Guard) {
	t.Helper()
	redistest.Await(t, "nothing is being stored", func() bool { return g.flights.Count(nil).Published == 0 })
}

func TestReadersOfAllVersionsWaitForAnUpdateOfOneAndAreWoken(t *testing.T) {
	t.Parallel()
	for name, build := range arenasOfVersions {
		for how, write := range map[string]func(by *release, write func(context.Context) (string, error)) error{
			"update": func(by *release, write func(context.Context) (string, error)) error {
				return by.guard.Update(context.Background(), thingKey, func(ctx context.Context) error {
					_, err := write(ctx)
					return err
				})
			},
			"put": func(by *release, write func(context.Context) (string, error)) error { return by.put(1, write) },
		} {
			for by := range 3 {
				expect.Beside(t, fmt.Sprint(name, ", ", how, " by ", by), func(t *testing.T) {
					f := newFleet(t, build(t), 3, steady).listening()
					db := newRow("old")
					all := rollout(t, f, db.load)
					began, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
					go func() { // owner: the test; stop: release; joined by done
						done <- write(all[by], func(ctx context.Context) (string, error) {
							close(began)
							<-release
							return db.saves("new")(ctx)
						})
					}()
					<-began
					var waiting []<-chan reply[string]
					for _, r := range all {
						waiting = append(waiting, r.async())
					}
					f.awaitInboxes(f.intent(thingKey), 3)
					close(release)
					for _, w := range waiting {
						want(t, w, "new")
					}
					expect.ErrorIs(t, <-done, nil)
					f.stored()
					loads := []int64{1, 1, 1}
					if how == "put" {
						loads[by] = 0
					}
					expect.Equal(t, "loads", fmt.Sprint(loadedSince(all)), fmt.Sprint(loads))
				})
			}
		}
	}
}

// writerProcess is a version 2 of the program, which updates thing 1, says when it is within the write, and when it has written.
func writerProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	cfg := steady
	cfg.Prefix, cfg.LeaseTTL = os.Getenv("PREFIX"), time.Second
	lines, called := bufio.NewScanner(os.Stdin), false
	write := func(context.Context) (string, error) {
		called = true
		fmt.Println("writing")
		lines.Scan()
		fmt.Println("written")
		lines.Scan()
		return "new", nil
	}
	r := newRelease(t, newGuard(t, rdb, cfg), 2, newRow("").load, makeRenamed)
	for !called { // on a busy machine it may lose its lock before
		if os.Getenv("HOW") == "put" {
			_ = r.put(1, write)
			continue
		}
		_ = r.guard.Update(context.Background(), thingKey, func(ctx context.Context) error {
			_, err := write(ctx)
			return err
		})
	}
}

func TestAVersionThatIsKilledWithinAnUpdateLeavesNoVersionAnOldValue(t *testing.T) {
	if redistest.IsChild(t) {
		writerProcess(t)
		return
	}
	t.Parallel()
	for _, how := range []string{"update", "put"} {
		for _, at := range []string{"writing", "written"} {
			expect.Beside(t, how+", "+at, func(t *testing.T) {
				cfg := steady
				cfg.WaitTimeout = 20 * time.Millisecond // nobody waits for the dead
				f := newFleet(t, standalone(t), 2, cfg)
				db, held := newRow("old"), newSource("old")
				all := []*release{newRelease(t, f.guards[0], 0, db.load, makePlain), newRelease(t, f.guards[1], 1, db.load, makePriced)}
				slow := newRelease(t, newGuardBeside(t, f, cfg), 3, held.load, makePriced)
				for _, r := range all {
					r.expect(f, 1, "old")
				}
				before := slow.async() // has read the source, and will store
				<-held.begun
				child := redistest.Child(t, parentName(t), "ADDR="+shared.Addr(), "PREFIX="+f.guards[0].cfg.Prefix, "HOW="+how)
				child.Expect("writing")
				if at == "written" {
					db.value.Store("new")
					held.value.Store("new")
					child.WriteLine("go")
					child.Expect("written")
				}
				child.Kill()
				close(held.release)
				want(t, before, "old")
				awaitStored(t, slow.guard)
				now := db.value.Load().(string)
				slow.expect(f, 1, now)
				for _, r := range all {
					r.expect(f, 1, now)
				}
				for _, r := range append(all, slow) { // when the intent has expired
					redistest.Await(t, "the value is stored", func() bool {
						r.expect(f, 1, now)
						return f.exists(r.value(1))
					})
				}
			})
		}
	}
}

// parentName is the name of the test that a subtest belongs to, which a child runs.
func parentName(t *testing.T) string {
	name := t.Name()
	for i := range name {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}

// The client sends a script again when the connection broke, whether the server had run it or not.
func TestAScriptOfOneVersionThatIsSentTwiceDoesNoHarmToAnother(t *testing.T) {
	t.Parallel()
	update := func(r *release, row *row) error {
		return r.guard.Update(context.Background(), thingKey, row.write("new"))
	}
	for script, do := range map[string]func(r *release, row *row) error{
		"acquire":      func(r *release, _ *row) error { _, err := r.get(2); return err },
		"fill":         func(r *release, _ *row) error { _, err := r.get(2); return err },
		"invalidate":   func(r *release, row *row) error { row.value.Store("new"); return r.invalidate(1) },
		"begin_update": update,
		"end_update":   update,
		"put":          func(r *release, row *row) error { return r.put(1, row.saves("new")) },
	} {
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.CutBefore} {
			for version := range 3 {
				expect.Beside(t, fmt.Sprint(script, ", ", fault, ", version ", version), func(t *testing.T) {
					sendTwice(t, script, fault, version, do)
				})
			}
		}
	}
}

// sendTwice makes one of three releases do something that sends a script twice, and checks what all of them load after that.
func sendTwice(t *testing.T, script string, fault redistest.Fault, version int, do func(r *release, row *row) error) {
	t.Helper()
	proxy := redistest.StartProxy(t, shared.Addr())
	instances := []client{shared.Client(t), shared.Client(t), shared.Client(t)}
	instances[version] = proxy.Client(t)
	f, row := newFleetOn(t, shared.Client(t), steady, instances...), newRow("old")
	all := rollout(t, f, row.load)
	for _, r := range all { // the server knows the scripts
		expect.ErrorIs(t, r.put(3, row.saves("old")), nil)
		expect.ErrorIs(t, r.invalidate(3), nil)
		expect.ErrorIs(t, r.guard.Update(context.Background(), "x", row.write("old")), nil)
		r.expect(f, 1, "old")
	}
	loadedSince(all)
	rule := proxy.On(scriptOf(script), fault).Times(1)
	expect.ErrorIs(t, do(all[version], row), nil)
	<-rule.Hit()
	f.stored()
	loads := []int64{0, 0, 0}
	if script == "acquire" || script == "fill" {
		loads[version] = 1
		all[version].expect(f, 2, "old")
	} else {
		loads = []int64{1, 1, 1}
	}
	if script == "put" {
		loads[version] = 0
	}
	for _, r := range all {
		r.expect(f, 1, row.value.Load().(string))
		r.expect(f, 1, row.value.Load().(string))
	}
	expect.Equal(t, "loads", fmt.Sprint(loadedSince(all)), fmt.Sprint(loads))
}

func TestAnInvalidationOfOneVersionThatFailedReachesTheOthersInTheEnd(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), steady, shared.Client(t), shared.Client(t), proxy.Client(t))
	db := newRow("old")
	all := rollout(t, f, db.load)
	for _, r := range all {
		r.expect(f, 1, "old")
	}
	db.value.Store("new")
	rule := proxy.On(scriptOf("invalidate"), redistest.ReplyError("READONLY for a while"))
	expect.Equal(t, "fails", all[2].invalidate(1) != nil, true)
	all[2].expect(f, 1, "new") // without the cache
	rule.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return f.guards[2].writes.Pending() == 0 })
	for _, r := range all {
		r.expect(f, 1, "new")
	}
}
