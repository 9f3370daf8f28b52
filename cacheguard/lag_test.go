package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const lag = 200 * time.Millisecond

// lagging is a reader with a tier, behind a proxy, and a writer, behind another.
func lagging(t *testing.T, maxLag time.Duration, tweak func(*redis.Client) *redis.Client) (f *fleet, reader, writer *redistest.Proxy) {
	t.Helper()
	reader, writer = redistest.StartProxy(t, shared.Addr()), redistest.StartProxy(t, shared.Addr())
	cfg := Config{RedisTimeout: bearing, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour, MaxLag: maxLag}}
	return newFleetOn(t, shared.Client(t), cfg, tweak(reader.Client(t)), tweak(writer.Client(t))), reader, writer
}

func as(rdb *redis.Client) *redis.Client { return rdb }

func withoutPublish(rdb *redis.Client) *redis.Client { return redistest.WithoutPublish(rdb) }

// oldest invalidates the key, and gets it for a while, at the reader whose tier has the old value, until that is older than lag. It returns how
// long after Invalidate had returned the last Get began that got the old value.
func (f *fleet) oldest(key string, lag time.Duration) (age time.Duration) {
	f.t.Helper()
	mustInvalidate(f.t, f.guards[1], key)
	returned := time.Now()
	for since := time.Duration(0); since < 4*lag && age <= lag; {
		since = time.Since(returned)
		if mustGet(f.t, f.guards[0], key, returns("new")) == "old" {
			age = since
		}
		pause(time.Millisecond)
	}
	return age
}

func TestATierServesNothingThatWasInvalidatedLongerAgoThanMaxLag(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(f *fleet, reader, writer *redistest.Proxy){
		"nothing happens":            func(*fleet, *redistest.Proxy, *redistest.Proxy) {},
		"the subscription is cut":    func(_ *fleet, reader, _ *redistest.Proxy) { reader.Cut() },
		"the subscription hangs":     func(_ *fleet, reader, _ *redistest.Proxy) { reader.BlackHoleSubscribers(true) },
		"the subscription is slow":   func(_ *fleet, reader, _ *redistest.Proxy) { reader.DelaySubscribers(lag) },
		"the reader's Redis is slow": func(_ *fleet, reader, _ *redistest.Proxy) { reader.Delay(lag) },
		"the echo's script is forgotten": func(_ *fleet, reader, _ *redistest.Proxy) {
			reader.On(scriptOf("say"), redistest.ReplyError("NOSCRIPT No matching script.")).Times(1)
		},
	}, func(t *testing.T, _ string, harm func(f *fleet, reader, writer *redistest.Proxy)) {
		f, reader, writer := lagging(t, lag, as)
		f.keptBy(0, "k", "old")
		harm(f, reader, writer)
		if age := f.oldest("k", lag); age > lag {
			t.Errorf("an answer was %v old", age)
		}
	})
}

// What must not be there is found where there is no such limit.
func TestWithoutMaxLagATierServesWhatWasInvalidatedAsLongAsASubscriptionHangs(t *testing.T) {
	t.Parallel()
	f, reader, _ := lagging(t, off, as)
	f.keptBy(0, "k", "old")
	reader.BlackHoleSubscribers(true)
	expect.Equal(t, "old for longer than MaxLag would be", f.oldest("k", lag) > lag, true)
}

// Here the process that invalidates dies after its script, which could not publish, and before it does that itself.
func dyingWriter(f *fleet, writer *redistest.Proxy) {
	channel := f.guards[0].notices.Channel
	writer.On(func(args []string) bool { return args[0] == "publish" && args[1] == channel }, redistest.ReplyError("ERR it is dead"))
}

func TestATierIsNotUsedOnAServerWhoseScriptsMayNotPublish(t *testing.T) {
	t.Parallel()
	f, _, writer := lagging(t, lag, withoutPublish)
	dyingWriter(f, writer)
	mustGet(t, f.guards[0], "k", returns("old"))
	for range 20 {
		_, how, err := get(context.Background(), f.guards[0], "k", unwanted[string](t))
		expect.Equal(t, "error", err, nil)
		expect.Equal(t, "how", how, Hit)
	}
	expect.Equal(t, "age", f.oldest("k", lag), 0)
}

// An echo must travel the way of the notices: one that the process publishes itself comes back where no notice does.
func TestAnEchoThatIsPublishedWithoutAScriptVouchesForWhatNeverArrives(t *testing.T) {
	t.Parallel()
	const lag = 2 * time.Second // echoes come back within it on a busy machine, too
	f, _, writer := lagging(t, lag, withoutPublish)
	g := f.guards[0]
	_, stop := g.inbox.Echoes(g.breakers.Len(), &wake.Asker{Every: lag / 4, Ask: func(_ int, echo func(string) *script.Call) {
		plain := echo("k").Args
		_ = g.rdb.(client).Publish(context.Background(), plain[0].(string), plain[1]) // what comes back is the answer
	}})
	t.Cleanup(stop)
	dyingWriter(f, writer)
	g.inbox.Start()
	redistest.Await(t, "the tier has the value", func() bool {
		_, how, err := get(context.Background(), g, "k", returns("old"))
		return err == nil && how == Local
	})
	expect.Equal(t, "old for longer than MaxLag", f.oldest("k", lag) > lag, true)
}

func TestOnAServerWhoseScriptsMayNotPublishTheProcessSendsNotices(t *testing.T) {
	t.Parallel()
	f, _, _ := lagging(t, off, withoutPublish) // nothing vouches for it, and it has to live with that
	f.keptBy(0, "k", "old")
	for name, invalidate := range map[string]func(g *Guard) error{
		"a key": func(g *Guard) error { return g.Invalidate(context.Background(), "k") },
		"all":   func(g *Guard) error { return g.InvalidateAll(context.Background()) },
		"an update": func(g *Guard) error {
			return g.Update(context.Background(), "k", func(context.Context) error { return nil })
		},
		"an intent": func(g *Guard) error {
			intent, err := g.Intend(context.Background(), Changes{Keys: []string{"k"}})
			if err != nil {
				return err
			}
			return intent.Done(context.Background())
		},
	} {
		f.keptBy(0, "k", mustGet(t, f.guards[0], "k", returns("old")))
		before := f.events.count(Loaded)
		expect.Equal(t, name, invalidate(f.guards[1]), nil)
		redistest.Await(t, name+" is heard of", func() bool {
			mustGet(t, f.guards[0], "k", returns("new"))
			return f.events.count(Loaded) > before
		})
	}
}

// wakesAWaiter has an instance wait for a load of another one. Its timer has to be an hour away.
func (f *fleet) wakesAWaiter() {
	f.t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	leader := async(f.guards[0], "k", func(context.Context) (string, error) {
		close(began)
		<-end
		return "v", nil
	})
	<-began
	waiter := async(f.guards[1], "k", unwanted[string](f.t))
	f.awaitRegistered("k", 1)
	close(end)
	want(f.t, leader, "v")
	want(f.t, waiter, "v")
}

// wakesAReader has an instance wait for the update of another one: it is registered at the update's intent, as there is no lease.
func (f *fleet) wakesAReader() {
	f.t.Helper()
	writing, write, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the test; ends with the update; joined by receiving
		done <- f.guards[0].Update(context.Background(), "k", func(context.Context) error { close(writing); <-write; return nil })
	}()
	<-writing
	reader := async(f.guards[1], "k", returns("written"))
	f.awaitRegisteredAt(f.intent("k"), 1)
	close(write)
	expect.Equal(f.t, "the update", <-done, nil)
	want(f.t, reader, "written")
}

func TestOnAServerWhoseScriptsMayNotPublishAGetHearsOfTheEndOfAnUpdate(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: bearing, LeaseTTL: time.Hour, WaitTimeout: time.Hour},
		withoutPublish(shared.Client(t)), withoutPublish(shared.Client(t))).listening()
	f.wakesAReader()
}

func TestOnAServerWhoseScriptsMayNotPublishWaitersAreWokenAllTheSame(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: bearing, LeaseTTL: time.Hour, WaitTimeout: time.Hour},
		withoutPublish(shared.Client(t)), withoutPublish(shared.Client(t))).listening()
	f.wakesAWaiter()

	writing, write := make(chan struct{}), make(chan struct{})
	update := func(g *Guard, f func()) <-chan error {
		done := make(chan error, 1)
		go func() { // owner: the test; ends with the update; joined by receiving
			done <- g.Update(context.Background(), "written", func(context.Context) error { f(); return nil })
		}()
		return done
	}
	first := update(f.guards[0], func() { close(writing); <-write })
	<-writing
	second := update(f.guards[1], func() {})
	redistest.Await(t, "the next writer waits for the lock", func() bool {
		return f.lockInfo("written").WaitingWriters > 0
	})
	close(write)
	expect.Equal(t, "the first writer", <-first, nil)
	expect.Equal(t, "the one that waited", <-second, nil)
}

func TestATierHasEchoesAfterTheGuardIsClosedThatAskedForThem(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	f := newFleetOn(t, rdb, Config{Local: LocalConfig{MaxEntries: 10}}, rdb, rdb)
	for i := range f.guards {
		f.keptBy(i, "k", "v")
	}
	_ = f.guards[0].Close() // always nil; the other one asks from now on
	f.guards = f.guards[1:]
	f.keptBy(0, "other", "v")
}

func TestSubscribedIsNotTrueWhereNoMessageArrivesThatTheTierNeeds(t *testing.T) {
	t.Parallel()
	f, reader, _ := lagging(t, lag, as)
	g := f.guards[0]
	used := func() bool { mustGet(t, g, "k", returns("v")); return g.Stats().Subscribed }
	f.keptBy(0, "k", "v")
	redistest.Await(t, "messages arrive", used)
	reader.BlackHoleSubscribers(true)
	redistest.Await(t, "none does", func() bool { return !used() })
	reader.BlackHoleSubscribers(false)
	redistest.Await(t, "messages arrive again", used)
	f, _, _ = lagging(t, lag, withoutPublish)
	g = f.guards[0]
	redistest.Await(t, "no script's message arrives", func() bool { return !used() })
}

func TestSelfCheckNamesWhyATierIsNotUsedOrMessagesDoNotArrive(t *testing.T) {
	t.Parallel()
	f, _, _ := lagging(t, lag, withoutPublish)
	expect.Says(t, f.guards[0].SelfCheck(redistest.Patiently(t)), "scripts may not PUBLISH on this server: ERR Script attempted")
	f, _, _ = lagging(t, off, withoutPublish)
	expect.Equal(t, "a tier that may be old", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
	f, reader, _ := lagging(t, lag, as)
	f.listening()
	reader.BlackHoleSubscribers(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	expect.Says(t, f.guards[0].checks().Messages(ctx), "a message did not arrive", "subscri") // it hangs, or has been replaced by one that does
}
