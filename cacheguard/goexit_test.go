package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// exits are the ways in which a function of the user's does not return.
var exits = map[string]func(){"panics": func() { panic("boom") }, "calls Goexit": runtime.Goexit}

// exitCodec is JSON, and fails in a way that it may not when it encodes, or decodes, this value.
type exitCodec struct {
	jsonCodec

	marshal, unmarshal func()
}

func (c exitCodec) Marshal(v any) ([]byte, error) {
	if c.marshal != nil {
		c.marshal()
	}
	return c.jsonCodec.Marshal(v)
}

func (c exitCodec) Unmarshal(data []byte, v any) error {
	if c.unmarshal != nil {
		c.unmarshal()
	}
	return c.jsonCodec.Unmarshal(data, v)
}

// exitPlaces are where the functions of a Cache run that may not take others along. Each makes a Config in which exit is called, and reads.
var exitPlaces = map[string]func(exit func()) (CacheConfig[int, thing], func(context.Context, *Cache[int, thing]) error){
	"Load": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.Load = func(context.Context, int) (thing, error) { exit(); return thing{}, nil }
		return cfg, readOne
	},
	"Load, for GetMany": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.Load = func(context.Context, int) (thing, error) { exit(); return thing{}, nil }
		return cfg, readMany
	},
	"LoadMany": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.LoadMany = func(context.Context, []int) (map[int]thing, error) { exit(); return map[int]thing{1: {}}, nil }
		return cfg, readMany
	},
	"Load, for Warm": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.Load = func(context.Context, int) (thing, error) { exit(); return thing{}, nil }
		return cfg, func(ctx context.Context, c *Cache[int, thing]) error {
			_, err := c.Warm(ctx, func(yield func(int) bool) { yield(1) }, WarmConfig{})
			return err
		}
	},
	"Tags": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.Tags = func(int, thing) []string { exit(); return nil }
		return cfg, readOne
	},
	"Tags, for GetMany": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.Tags = func(int, thing) []string { exit(); return nil }
		cfg.LoadMany = func(context.Context, []int) (map[int]thing, error) { return map[int]thing{1: {ID: 1}}, nil }
		return cfg, readMany
	},
	"AbsentTags": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.AbsentTags = func(int) []string { exit(); return nil }
		cfg.Load = func(context.Context, int) (thing, error) { return thing{}, ErrNotFound }
		return cfg, readOne
	},
	"IsNotFound": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.IsNotFound = func(error) bool { exit(); return false }
		cfg.Load = func(context.Context, int) (thing, error) { return thing{}, errors.New("no") }
		return cfg, readOne
	},
	"IsNotFound, for GetMany": func(exit func()) (cfg CacheConfig[int, thing], read func(context.Context, *Cache[int, thing]) error) {
		cfg.IsNotFound = func(error) bool { exit(); return false }
		cfg.LoadMany = func(context.Context, []int) (map[int]thing, error) { return nil, errors.New("no") }
		return cfg, readMany
	},
}

func readOne(ctx context.Context, c *Cache[int, thing]) error {
	_, err := c.Get(ctx, 1)
	return err
}

func readMany(ctx context.Context, c *Cache[int, thing]) error {
	_, err := c.GetMany(ctx, []int{1})
	return err
}

// It is an error of those who wait, here as well as for another instance, and neither hangs nor holds up those who come later.
func TestWhereverUsersCodeExitsItsCallersGetAPanicError(t *testing.T) {
	t.Parallel()
	for place, in := range exitPlaces {
		for name, exit := range exits {
			expect.Beside(t, place+" "+name, func(t *testing.T) {
				f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute, LoadTimeout: -1, WaitTimeout: -1}).listening()
				cfg, read := in(exit)
				if cfg.Load == nil {
					cfg.Load = func(_ context.Context, id int) (thing, error) { return thing{ID: id}, nil }
				}
				cfg.Name = "thing"
				c := newCaches(t, f, cfg)[0]
				err := read(t.Context(), c)
				if !errors.As(err, new(*PanicError)) {
					t.Errorf("error %v", err)
				}
				cfg.Load = func(_ context.Context, id int) (thing, error) { return thing{ID: id}, nil }
				cfg.LoadMany, cfg.Tags, cfg.AbsentTags, cfg.IsNotFound = nil, nil, nil, nil
				mustInvalidate(t, f.guards[1], "thing:1") // the failure is remembered for a moment
				after, err := newCaches(t, f, cfg)[1].Get(t.Context(), 1)
				expect.Equal(t, "afterwards, elsewhere", after, thing{ID: 1})
				expect.Equal(t, "error", err, nil)
			})
		}
	}
}

// What a Codec does not encode is not stored, and what it does not decode is loaded.
func TestACodecThatExitsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for name, exit := range exits {
		for of, codec := range map[string]exitCodec{"encoding": {marshal: exit}, "decoding": {unmarshal: exit}} {
			expect.Beside(t, name+", "+of, func(t *testing.T) {
				f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute, WaitTimeout: -1}).listening()
				cfg := CacheConfig[int, thing]{Name: "thing", Load: func(_ context.Context, id int) (thing, error) { return thing{ID: id}, nil }}
				right := newCaches(t, f, cfg)
				cfg.Codec = codec
				exits := newCaches(t, f, cfg)
				for i, c := range []*Cache[int, thing]{exits[0], exits[1], right[0], exits[0], exits[1], right[1]} {
					done := make(chan reply[thing], 1)
					go func() { // owner: the test; ends with the Get, or by Goexit in it; joined below
						r := reply[thing]{err: &PanicError{}}
						defer func() { done <- r }()
						r.value, r.err = c.Get(t.Context(), 1)
					}()
					r := <-done
					if r.value.ID != 1 && (r.err == nil || c == right[0] || c == right[1]) {
						t.Errorf("Get %d: %v, %v", i, r.value, r.err)
					}
					if i == 1 {
						f.stored()                                // or the next Get may join a load that has failed, and not ended
						mustInvalidate(t, f.guards[0], "thing:1") // the failure is remembered for a moment
					}
				}
			})
		}
	}
}

// exitCompression fails in a way that it may not when it compresses, or decompresses.
type exitCompression struct {
	deflate

	compress, decompress func()
}

func (c exitCompression) Compress(payload []byte) []byte {
	c.compress()
	return c.deflate.Compress(payload)
}

func (c exitCompression) Decompress(format byte, packed []byte, limit int) ([]byte, error) {
	c.decompress()
	return c.deflate.Decompress(format, packed, limit)
}

// What a Compression does not compress is stored as it is.
func TestACompressionThatExitsCostsOnlyTheCompression(t *testing.T) {
	t.Parallel()
	expect.Each(t, exits, func(t *testing.T, _ string, exit func()) {
		f := mixed(t, Config{RedisTimeout: bearing, LeaseTTL: time.Minute, WaitTimeout: -1}, exitCompression{"x", exit, func() {}}, deflate("x"))
		c := newCaches(t, f, CacheConfig[int, string]{Name: "thing", Load: func(context.Context, int) (string, error) { return long, nil }})
		expect.Equal(t, "error of Put", c[0].Put(t.Context(), 1, func(context.Context) (string, error) { return long, nil }), nil)
		for id := range 3 {
			for i := range c {
				value, err := c[i].Get(t.Context(), id)
				expect.Equal(t, "value", value, long)
				expect.Equal(t, "error", err, nil)
			}
			expect.Equal(t, "format", f.packed(c[0].Key(id)), "n")
		}
	})
}

// It ends a caller whose goroutine it runs in, and holds up nobody.
func TestACompressionThatExitsWhenItDecompressesKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	expect.Each(t, exits, func(t *testing.T, _ string, exit func()) {
		f := mixed(t, Config{RedisTimeout: bearing, LeaseTTL: time.Minute, WaitTimeout: -1}, exitCompression{"x", func() {}, exit}, deflate("x")).listening()
		begun, loaded := make(chan struct{}), make(chan struct{})
		go func() { // owner: the test, which waits for loaded
			defer close(loaded)
			_, _ = Get(t.Context(), f.guards[1], "k", func(context.Context) (string, error) {
				close(begun)
				f.awaitRegistered("k", 1)
				return long, nil
			})
		}()
		<-begun
		for range 3 { // a waiter, then hits
			ended := make(chan struct{})
			go func() { // owner: the test; ends with the Get, or by Goexit in it
				defer close(ended)
				_, _ = Get(t.Context(), f.guards[0], "k", returns(long))
			}()
			<-ended
		}
		<-loaded
		expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns(long)), long)
		redistest.AwaitNoLease(t, shared.Client(t), f.guards[0].cfg.Prefix)
	})
}

func TestAPanicWithErrNotFoundIsNoAbsence(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	_, err := Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) {
		panic(fmt.Errorf("must: %w", ErrNotFound))
	})
	if panicked := (*PanicError)(nil); !errors.As(err, &panicked) {
		t.Errorf("first: %v", err)
	}
	expect.Equal(t, "absence stored", f.exists(f.value("k")), false)
}

func TestAnErrorThatPanicsDoesNotEndTheProcess(t *testing.T) {
	if redistest.IsChild(t) {
		rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
		g, _ := New(rdb, Config{Prefix: os.Getenv("PREFIX")})
		_, err := Get(context.Background(), g, "k", func(context.Context) (string, error) {
			var e *typedNil
			return "", e
		})
		fmt.Println("alive", err != nil)
		return
	}
	child := redistest.Child(t, t.Name(), "ADDR="+shared.Addr(), "PREFIX=typednil")
	child.Expect("alive true")
}

func TestAnErrorThatPanicsInUnwrapDoesNotEndTheProcess(t *testing.T) {
	if redistest.IsChild(t) {
		g := newGuard(t, shared.Client(t), Config{Prefix: "typednilis"})
		_, err := Get(context.Background(), g, "k", func(context.Context) (string, error) {
			var e *RedisError // has an Unwrap that reads a field, as *url.Error and *fs.PathError have
			return "", e
		})
		fmt.Println("alive", err != nil)
		return
	}
	child := redistest.Child(t, t.Name())
	child.Expect("alive true")
}

type typedNil struct{ s string }

func (e *typedNil) Error() string { return e.s }

// Unwrap of *RedisError reads a field, as it does for *url.Error and *fs.PathError, and so does Error of *typedNil: a typed nil panics in both.
func TestNeitherATypedNilNorAPanicWithOneEndsTheProcess(t *testing.T) {
	if !redistest.IsChild(t) {
		child := redistest.Child(t, t.Name())
		for range 12 {
			child.Expect("alive true")
		}
		return
	}
	g := newGuard(t, shared.Client(t), Config{Prefix: "typednils", Gate: gateByContext, RedactError: func(error) string { return "redacted" }})
	n := 0
	for _, failure := range []error{(*RedisError)(nil), (*typedNil)(nil)} {
		for _, fail := range []func() error{func() error { return failure }, func() error { panic(failure) }} {
			c, err := NewCache(g, CacheConfig[int, thing]{
				Name: fmt.Sprint("thing", n), Load: func(context.Context, int) (thing, error) { return thing{}, fail() },
				LoadMany: func(context.Context, []int) (map[int]thing, error) { return nil, fail() },
			})
			expect.Must(t, err)
			for _, read := range []func() error{
				func() error { _, err := c.Get(t.Context(), 1); return err },
				func() error { _, err := c.GetMany(t.Context(), []int{2, 3}); return err },
				func() error { _, err := c.Get(withoutCache(t.Context()), 4); return err },
			} {
				fmt.Println("alive", read() != nil)
			}
			n++
		}
	}
}
