package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestBytesAndStringsAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	mustGet(t, g, "bytes", returns([]byte("\x00 raw")))
	mustGet(t, g, "string", returns("text"))
	mustGet(t, g, "number", returns(7))
	for key, payload := range map[string]string{"bytes": "\x00 raw", "string": "text", "number": "7"} {
		raw, err := f.redis.Get(context.Background(), f.value(key)).Result()
		e, bad := protocol.DecodeEntry(key, []byte(raw))
		if err != nil || bad != nil || string(e.Payload) != payload || len(raw) != protocol.HeaderLen+protocol.EpochLen+1+len(payload) {
			t.Errorf("%s: %q, %v", key, raw, err)
		}
	}
	expect.Equal(t, "bytes", string(mustGet(t, g, "bytes", unwanted[[]byte](t))), "\x00 raw")
	expect.Equal(t, "string", mustGet(t, g, "bytes", unwanted[string](t)), "\x00 raw") // the same bytes
}

// countingCodec counts how often it decodes.
type countingCodec struct {
	jsonCodec
	decoded atomic.Int64
}

func (c *countingCodec) Unmarshal(data []byte, v any) error {
	c.decoded.Add(1)
	return c.jsonCodec.Unmarshal(data, v)
}

type product struct{ Name string }

func TestCallersThatShareALoadShareOneDecodedValue(t *testing.T) {
	t.Parallel()
	codec := new(countingCodec)
	f := newFleet(t, standalone(t), 2, Config{Codec: codec}).listening()
	db := newSource("p")
	load := func(ctx context.Context) (*product, error) {
		name, err := db.load(ctx)
		return &product{name}, err
	}
	var here, there []<-chan reply[*product]
	for range 5 {
		here = append(here, async(f.guards[0], "k", load))
	}
	<-db.begun
	awaitCallers[*product](f, 0, "k", 5)
	there = append(there, async(f.guards[1], "k", load))
	f.awaitRegistered("k", 1)
	close(db.release)
	first := <-here[0]
	for _, r := range here[1:] {
		expect.Equal(t, "the pointer", (<-r).value, first.value)
	}
	expect.Equal(t, "name there", (<-there[0]).value.Name, "p")
	expect.Equal(t, "decoded", codec.decoded.Load(), 1) // there, from the push
}

func TestEntriesOfAnotherTypeAreReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "k", returns("text"))
	expect.Equal(t, "as a number", mustGet(t, f.guards[0], "k", returns(7)), 7)
	expect.Equal(t, "as a number again", mustGet(t, f.guards[0], "k", unwanted[int](t)), 7)
	expect.Equal(t, "damaged", f.told().damaged.Load(), 1)
}

func TestDamagedEntriesAreCountedMisses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{})
	damage := map[string]func(key string) error{
		"foreign":       func(key string) error { return f.redis.Set(ctx, key, "not ours", time.Minute).Err() },
		"empty":         func(key string) error { return f.redis.Set(ctx, key, "", time.Minute).Err() },
		"damaged":       func(key string) error { return f.redis.Append(ctx, key, "more").Err() },
		"truncated":     func(key string) error { return f.redis.Set(ctx, key, "\xfb\x01n000", time.Minute).Err() },
		"of other type": func(key string) error { return f.redis.SAdd(ctx, key, "member").Err() },
		"a lease of another type": func(key string) error {
			return errors.Join(f.redis.Del(ctx, key).Err(), f.redis.Set(ctx, protocol.LeaseKey(key), "x", time.Minute).Err())
		},
	}
	for name, spoil := range damage {
		if name != "of other type" {
			mustGet(t, f.guards[0], name, returns("v"))
		}
		if err := spoil(f.value(name)); err != nil {
			t.Fatal(name, err)
		}
		expect.Equal(t, name, mustGet(t, f.guards[0], name, returns("new")), "new")
		expect.Equal(t, name+", again", mustGet(t, f.guards[0], name, unwanted[string](t)), "new")
	}
	expect.Equal(t, "damaged", f.told().damaged.Load(), int64(len(damage)-2)) // to MGET, a key of another type is not there
}

// A copy that somebody made, and a reply of Redis that belongs to another request, are as good as damage.
func TestAnotherKeysEntryIsServedToNobody(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	mustGet(t, f.guards[0], "alice", returns("hers"))
	copied := func(key string) string {
		expect.Must(t, f.redis.Copy(ctx, f.value("alice"), f.value(key), 0, true).Err())
		return key
	}
	expect.Equal(t, "Get", mustGet(t, f.guards[0], copied("bob"), returns("his")), "his")
	many, err := GetMany(ctx, f.guards[1], []string{copied("carol"), "alice"}, func(_ context.Context, keys []string) (map[string]string, error) {
		return map[string]string{keys[0]: "of " + keys[0]}, nil
	})
	expect.Equal(t, "GetMany", fmt.Sprint(many, err), "map[alice:hers carol:of carol] <nil>")
	expect.Equal(t, "Inspect", mustInspect(t, f.guards[1], copied("dave")).State, EntryDamaged)
	expect.Equal(t, "damaged", f.told().damaged.Load(), 2)
}

// endings are what a loader may do other than return a value, and what its callers get.
var endings = map[string]struct {
	load func(context.Context) (any, error)
	is   func(value any, err error) bool
}{
	"panics": {
		func(context.Context) (any, error) { panic("boom") },
		func(_ any, err error) bool {
			var p *PanicError
			return errors.As(err, &p) && p.Value == "boom" && p.Key == "k" && strings.Contains(string(p.Stack), "get_test.go")
		},
	},
	"panics with an error": {
		func(context.Context) (any, error) { panic(context.DeadlineExceeded) },
		func(_ any, err error) bool { return errors.Is(err, context.DeadlineExceeded) },
	},
	"panics with nil": {
		func(context.Context) (any, error) { panic(nil) },
		func(_ any, err error) bool { return errors.As(err, new(*PanicError)) },
	},
	"calls Goexit": {
		func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
		func(_ any, err error) bool { return errors.As(err, new(*PanicError)) },
	},
	"returns what cannot be encoded": {
		func(context.Context) (any, error) { return func() {}, nil },
		func(value any, err error) bool { return value != nil && err == nil },
	},
	"returns too much": {
		func(context.Context) (any, error) { return strings.Repeat("x", 1000), nil },
		func(value any, err error) bool { return value != nil && err == nil },
	},
}

func TestWhateverALoaderDoesItsLeaseIsFreeAndItsCallersAreAnswered(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		expect.Beside(t, name, func(t *testing.T) {
			f := newFleet(t, standalone(t), 2, Config{MaxValueBytes: 100, LeaseTTL: time.Minute}).listening()
			db := newSource("")
			load := func(ctx context.Context) (any, error) {
				if _, err := db.load(ctx); err != nil {
					return nil, err
				}
				return end.load(ctx)
			}
			here := async(f.guards[0], "k", load)
			<-db.begun
			joined := async(f.guards[0], "k", load)
			awaitCallers[any](f, 0, "k", 2)
			there := async(f.guards[1], "k", load)
			f.awaitRegistered("k", 1)
			close(db.release)
			for _, c := range []<-chan reply[any]{here, joined} {
				if r := <-c; !end.is(r.value, r.err) {
					t.Errorf("got %v, %v", r.value, r.err)
				}
			}
			<-there // woken, though the lease lasts a minute
			holder, err := f.redis.HExists(context.Background(), f.lease("k"), "token").Result()
			if err != nil || holder {
				t.Errorf("the lease is held: %v, %v", holder, err)
			}
			expect.Equal(t, "the value is stored", f.exists(f.value("k")), false)
		})
	}
}

func TestALoaderThatAsksForItsOwnKeyGetsErrReentrant(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 1})
	g := f.guards[0]
	direct := func(ctx context.Context) (string, error) { return Get(ctx, g, "k", returns("inner")) }
	expect.ErrorIs(t, expect.Err(Get(context.Background(), g, "k", direct)), ErrReentrant)
	through := func(ctx context.Context) (string, error) { return Get(ctx, g, "outer", returns("inner")) }
	_, err := Get(context.Background(), g, "outer", func(ctx context.Context) (string, error) {
		return Get(ctx, g, "between", through)
	})
	expect.ErrorIs(t, err, ErrReentrant)
	outer := mustGet(t, g, "page", func(ctx context.Context) (string, error) { // more loads than MaxLoads, nested
		part, err := Get(ctx, g, "part", returns("part"))
		return "page of " + part, err
	})
	expect.Equal(t, "nested loads", outer, "page of part")
}

func TestCallsThatCannotBeAnsweredSayWhy(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	expect.Says(t, expect.Err(Get[string](context.Background(), g, "k", nil)), "load is nil")
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	_, err := Get(ctx, g, "k", unwanted[string](t))
	expect.ErrorIs(t, err, context.Canceled, why)
	expect.Says(t, err, `"k"`)
}

func TestTheFirstCallersCancellationIsNotTheOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	db := newSource("v")
	ctx, cancel := context.WithCancel(context.Background())
	first := asyncCtx(ctx, f.guards[0], "k", db.load)
	<-db.begun
	second := async(f.guards[0], "k", db.load)
	awaitCallers[string](f, 0, "k", 2)
	cancel()
	expect.ErrorIs(t, (<-first).err, context.Canceled)
	close(db.release)
	want(t, second, "v")
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestALoadSlowerThanLoadTimeoutEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LoadTimeout: 50 * time.Millisecond})
	polite := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	expect.ErrorIs(t, expect.Err(Get(context.Background(), f.guards[0], "polite", polite)), context.DeadlineExceeded)
	gate := make(chan struct{})
	defer close(gate) // Close waits for it
	stubborn := func(context.Context) (string, error) { <-gate; return "", nil }
	_, err := Get(context.Background(), f.guards[0], "stubborn", stubborn)
	expect.ErrorIs(t, err, context.DeadlineExceeded)
	expect.Says(t, err, "LoadTimeout")
}

func TestNoMoreThanMaxLoadsRunAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 3})
	db := newSource("v")
	var running, most atomic.Int64
	load := func(ctx context.Context) (string, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return db.load(ctx)
	}
	var replies []<-chan reply[string]
	for i := range 30 {
		replies = append(replies, async(f.guards[0], string(rune('a'+i)), load))
	}
	for range 3 {
		<-db.begun
	}
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 30)
	expect.Equal(t, "most at once", most.Load(), 3)
}
