package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// These are the rows of the table of errors in docs/guarantees.md: each operation that ends what is cached, with each
// fault, at each of its scripts.

// changes are what a writer can do, by what the table calls it. Each writes the value to the row.
var changes = map[string]struct {
	steps []string // the scripts that it sends, but for those of the lock
	key   string   // of its *RedisError
	run   func(ctx context.Context, c *Cache[int, string], r *row, value string) error
}{
	"Cache.Invalidate": {[]string{"invalidate"}, rowKey, func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return errors.Join(r.write(value)(ctx), c.Invalidate(ctx, 1))
	}},
	"Guard.InvalidateTags": {[]string{"revoke"}, "row", func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return errors.Join(r.write(value)(ctx), c.guard.InvalidateTags(ctx, "row"))
	}},
	"Guard.InvalidateAll": {[]string{"revoke"}, "", func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return errors.Join(r.write(value)(ctx), c.guard.InvalidateAll(ctx))
	}},
	"Cache.InvalidateAll": {[]string{"revoke"}, "row", func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return errors.Join(r.write(value)(ctx), c.InvalidateAll(ctx))
	}},
	"Cache.Update": {[]string{"begin_update", "end_update"}, rowKey, func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return c.Update(ctx, 1, r.write(value))
	}},
	"Cache.Put": {[]string{"begin_update", "put"}, rowKey, func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return c.Put(ctx, 1, r.saves(value))
	}},
	"Guard.Intend":             {[]string{"intend", "done"}, rowKey, intended(Changes{Keys: []string{rowKey}})},
	"Guard.Intend, with a tag": {[]string{"intend_tag", "done_tag"}, "row", intended(Changes{Tags: []string{"row"}})},
	"Cache.Update, with a tag": {[]string{"intend_tag", "done_tag"}, "row", func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		return c.Update(ctx, 1, func(ctx context.Context) error {
			if err := Also(ctx, Changes{Tags: []string{"row"}}); err != nil {
				return err
			}
			return r.write(value)(ctx)
		})
	}},
}

// intended is a transaction that changes what is named.
func intended(names Changes) func(context.Context, *Cache[int, string], *row, string) error {
	return func(ctx context.Context, c *Cache[int, string], r *row, value string) error {
		in, err := c.guard.Intend(ctx, names)
		if err != nil {
			return err
		}
		return errors.Join(r.write(value)(ctx), in.Done(ctx))
	}
}

// begins reports whether the operation is one before anything is written.
func (e *RedisError) begins() bool { return e.Op == "update" || e.Op == "intend" }

// impatient bounds how long a test of a reply that does not come takes. A busy machine may exceed it, so no test relies on a request that
// succeeds at once. A lease outlasts the reply that is waited for, however late the timers are, and its renewal: no lock is lost.
var impatient = Config{RedisTimeout: time.Second, LeaseTTL: 5 * time.Second}

// changed is two instances with a row in a Cache. Instance 0 reaches Redis through a proxy.
type changed struct {
	*fleet
	proxy  *redistest.Proxy
	caches []*Cache[int, string]
	row    *row
}

func newChanged(t *testing.T, server *redistest.Server, cfg Config) *changed {
	t.Helper()
	teach(t, server)
	proxy := redistest.StartProxy(t, server.Addr())
	f := newFleetOn(t, server.Client(t), cfg, proxy.Client(t), server.Client(t))
	db := newRow("old")
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "row",
		Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
		Tags: func(int, string) []string { return []string{"row"} },
	})
	f.listening()
	x := &changed{f, proxy, caches, db}
	x.settle("old")
	return x
}

// teach makes the server know the scripts, so that each is sent once. It waits for as long as a busy machine needs.
func teach(t *testing.T, server *redistest.Server) {
	t.Helper()
	f := newFleetOn(t, server.Client(t), Config{RedisTimeout: bearing}, server.Client(t))
	db := newRow("old")
	c := rows(t, f, db)[0]
	mustGet(t, f.guards[0], rowKey, db.load)
	mustInvalidate(t, f.guards[0], rowKey)
	mustInvalidateTags(t, f.guards[0], "row")
	expect.Equal(t, "Update", c.Update(context.Background(), 1, db.write("new")), nil)
	expect.Equal(t, "Put", c.Put(context.Background(), 1, db.saves("newer")), nil)
	mustDone(t, mustIntend(t, f.guards[0], Changes{Keys: []string{rowKey}, Tags: []string{"row"}}))
}

// read gets the value, and waits until it is stored if it may be.
func (x *changed) read(i int) string {
	x.t.Helper()
	v, err := x.caches[i].Get(context.Background(), 1)
	expect.Must(x.t, err)
	x.stored()
	return v
}

func (x *changed) written() string { return x.row.value.Load().(string) }

// settle waits until instance 1 has the value, and stores it again.
func (x *changed) settle(value string) {
	x.t.Helper()
	redistest.Await(x.t, value+" is there, and stored", func() bool {
		return x.read(1) == value && x.exists(x.value(rowKey))
	})
}

// until makes instance 0 repeat the change until the rule has been hit. It returns the last error and what was to be written.
func (x *changed) until(rule *redistest.Rule, run func(context.Context, *Cache[int, string], *row, string) error) (value string, err error) {
	for n := 0; rule.Count() == 0; n++ {
		value = fmt.Sprint("new", n)
		err = run(context.Background(), x.caches[0], x.row, value)
	}
	return value, err
}

func TestNoFaultAtAnyStepOfAChangeMakesItsNilWrongOrItsErrorNameless(t *testing.T) {
	t.Parallel()
	faults := []redistest.Fault{
		redistest.DropReply, redistest.SwallowReply, redistest.CutBefore, redistest.Hold, redistest.ReplyError("LOADING for a while"),
	}
	for name, change := range changes {
		for _, step := range change.steps {
			for _, fault := range faults {
				if !expect.Drawn(3) {
					continue
				}
				expect.Beside(t, name+", "+step+", "+string(fault), func(t *testing.T) {
					x := newChanged(t, shared, impatient)
					rule := x.proxy.On(scriptOf(step), fault).Times(1)
					value, err := x.until(rule, change.run)
					wrote := x.written() == value
					var failed *RedisError
					ok := errors.As(err, &failed)
					switch {
					case !ok && wrote: // nil, or the lock alone was in trouble, as on a busy machine: all else is done
						expect.Equal(t, "there, afterwards", x.read(1), value)
					case !ok:
						expect.ErrorIs(t, err, rwlock.ErrNotAcquired)
					case failed.Key != change.key || failed.begins() == wrote:
						t.Errorf("error %v; written: %v", err, wrote)
					}
					if !strings.Contains(name, "Invalidate") && !strings.Contains(step, "intend_tag") {
						expect.Equal(t, "Written", Written(err), wrote)
					}
					expect.Equal(t, "class", ClassOf(err), classOfChange(err, wrote))
					expect.Equal(t, "here", x.read(0), x.written())
					rule.Release()
					redistest.Await(t, "nothing is pending", func() bool { return x.guards[0].writes.Pending() == 0 })
					x.settle(x.written())
					expect.Equal(t, "here, afterwards", x.read(0), x.written())
				})
			}
		}
	}
}

// classOfChange is the class of a change that Redis disturbed.
func classOfChange(err error, wrote bool) Class {
	switch {
	case err == nil:
		return ClassNone
	case wrote:
		return ClassCommitted
	}
	return ClassUnavailable
}

// What is committed is told to Redis even if its caller has left, who gets the same answer as one who has stayed.
func TestACallerWhoLeavesAfterTheCommitGetsTheAnswerOfOneWhoStays(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		last := change.steps[len(change.steps)-1]
		if last == "put" {
			last = "end_update" // nobody wants the value any more
		}
		for _, fault := range []redistest.Fault{redistest.Hold, redistest.SwallowReply, redistest.ReplyError("LOADING for a while")} {
			expect.Beside(t, name+", "+string(fault), func(t *testing.T) {
				cfg := impatient
				if fault == redistest.Hold {
					cfg = Config{RedisTimeout: bearing}
				}
				x := newChanged(t, shared, cfg)
				rule := x.proxy.On(scriptOf(last), fault)
				ctx, leave := context.WithCancel(t.Context())
				x.row.then = leave
				answer := make(chan error, 1)
				go func() { answer <- change.run(ctx, x.caches[0], x.row, "new") }() // owner: the test; ends with RedisTimeout; joined below
				if fault == redistest.Hold {
					<-rule.Hit()
					rule.Release()
					expect.Equal(t, "error", <-answer, nil)
					expect.Equal(t, "there, afterwards", x.read(1), "new")
					return
				}
				err := <-answer
				var failed *RedisError
				is := errors.As(err, &failed)
				if x.written() == "old" { // a busy machine: the first step took too long
					expect.Equal(t, "it says so", is && failed.begins() || errors.Is(err, rwlock.ErrNotAcquired), true)
					expect.Equal(t, "class", ClassOf(err), ClassUnavailable)
					return
				}
				if !is || failed.Op != "invalidate" || failed.Key != change.key || !Written(err) || errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				expect.Equal(t, "class", ClassOf(err), ClassCommitted)
				expect.Equal(t, "here", x.read(0), "new")
				rule.Remove()
				x.settle("new")
			})
		}
	}
}

func TestUpdatesPutsAndIntentsSurviveADeathAtEachStep(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		if strings.Contains(name, "Invalidate") {
			continue
		}
		for _, step := range change.steps {
			for _, fault := range []redistest.Fault{redistest.CutBefore, redistest.DropReply} { // before Redis runs it, and after
				if !expect.Drawn(2) {
					continue
				}
				expect.Beside(t, name+", "+step+", "+string(fault), func(t *testing.T) {
					x := newChanged(t, shared, impatient)
					rule := x.proxy.On(scriptOf(step), fault).Times(1)
					x.proxy.On(func([]string) bool { return rule.Count() > 0 }, redistest.CutBefore) // the process is dead
					expect.Fails(t, expect.Err(x.until(rule, change.run)))
					x.settle(x.written())
				})
			}
		}
	}
}

func TestAChangeBesideAFullRedisIsMadeOrSaysThatItIsNot(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		expect.Beside(t, name, func(t *testing.T) {
			x := newChanged(t, redistest.Start(t), Config{RedisTimeout: bearing})
			full := func(limit string) {
				expect.Must(t, x.redis.ConfigSet(context.Background(), "maxmemory", limit).Err())
			}
			full("1")
			err := change.run(context.Background(), x.caches[0], x.row, "new")
			if !strings.Contains(name, "Invalidate") { // the intent needs room
				var failed *RedisError
				ok := errors.As(err, &failed)
				expect.Equal(t, "it says that nothing is written", ok && failed.begins() && !Written(err), true)
				expect.Equal(t, "class", ClassOf(err), ClassUnavailable)
				expect.Equal(t, "written", x.written(), "old")
			} else {
				expect.Equal(t, "error", err, nil)
			}
			expect.Equal(t, "here", x.read(0), x.written())
			expect.Equal(t, "there", x.read(1), x.written())
			full("0")
			x.settle(x.written())
		})
	}
}

func TestAPutWithTagsThatNoEntryCanHaveStoresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	db := newRow("old")
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "row",
		Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
		Tags: func(_ int, v string) []string {
			if v == "new" {
				return numbered(0, maxTags+1)
			}
			return nil
		},
	})
	x := &changed{f, nil, caches, db}
	expect.Equal(t, "before", x.read(1), "old")
	expect.Equal(t, "Put", caches[0].Put(context.Background(), 1, db.saves("new")), nil)
	expect.Equal(t, "unstorable", f.events.unstorable.Load(), 1)
	expect.Equal(t, "stored", f.exists(f.value(rowKey)), false)
	expect.Equal(t, "there", x.read(1), "new")
}

func TestAnUpdateEndsThoughRedisHasFilledUpMeanwhile(t *testing.T) {
	t.Parallel()
	x := newChanged(t, redistest.Start(t), Config{RedisTimeout: bearing})
	full := func(limit string) error {
		return x.redis.ConfigSet(context.Background(), "maxmemory", limit).Err()
	}
	err := x.caches[0].Update(context.Background(), 1, func(ctx context.Context) error {
		return errors.Join(x.row.write("new")(ctx), full("1"))
	})
	expect.Equal(t, "Update", err, nil)
	expect.Equal(t, "here", x.read(0), "new")
	expect.Equal(t, "there", x.read(1), "new")
	expect.Equal(t, "there is memory again", full("0"), nil)
	x.settle("new")
}

func TestALoadAnUpdateAndATransactionGoOnThoughRedisHasFilledUpMeanwhile(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second // it is renewed in time on a busy machine
	ctx, server := context.Background(), redistest.Start(t)
	f := newFleetOn(t, server.Client(t), Config{RedisTimeout: bearing, LeaseTTL: lease}, server.Client(t))
	g := f.guards[0]
	full := func(limit string) {
		t.Helper()
		expect.Must(t, f.redis.ConfigSet(ctx, "maxmemory", limit).Err())
	}
	began, finish, ended := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
	work := func(context.Context) error {
		began <- struct{}{}
		<-finish
		return nil
	}
	go func() { // owner: the test; ends when told; joined by the channel, as the next one
		_, err := Get(ctx, g, "loaded", func(ctx context.Context) (string, error) { return "v", work(ctx) })
		ended <- err
	}()
	go func() { ended <- g.Update(ctx, "updated", work) }()
	<-began
	<-began
	in := mustIntend(t, g, Changes{Keys: []string{"k"}, Tags: []string{"t"}})
	now := func() time.Time { return f.redis.Time(ctx).Val() }
	full("1")
	since := now()
	redistest.Await(t, "leases and intents have outlived their first TTL", func() bool { return now().Sub(since) > 5*lease/2 })
	loading, err := g.Inspect(ctx, "loaded")
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "the load has its lease", loading.Load != nil, true)
	close(finish)
	expect.Equal(t, "Get, or Update", <-ended, nil)
	expect.Equal(t, "Update, or Get", <-ended, nil)
	expect.Equal(t, "Done", in.Done(ctx), nil)
	full("0")
}
