package cacheguard

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

// slowCodec lets others run before it encodes.
type slowCodec struct{ jsonCodec }

func (c slowCodec) Marshal(v any) ([]byte, error) {
	for range 1000 {
		runtime.Gosched()
	}
	return c.jsonCodec.Marshal(v)
}

// Values are read-only, but the only caller of a load has nobody to notice.
func TestWhatACallerDoesToItsValueIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, LoadTimeout: time.Hour, Codec: slowCodec{}}) // each of its turns is long on a busy machine
	made := func(context.Context) (map[string]string, error) { return map[string]string{"is": "right"}, nil }
	bytes := func(context.Context) ([]byte, error) { return []byte("right"), nil }
	c := newCaches(t, f, CacheConfig[string, map[string]string]{
		Name: "batched", Load: func(ctx context.Context, _ string) (map[string]string, error) { return made(ctx) },
		LoadMany: func(ctx context.Context, keys []string) (map[string]map[string]string, error) {
			v, err := made(ctx)
			return map[string]map[string]string{keys[0]: v}, err
		},
	})
	ctx := t.Context()
	spoil := func(v map[string]string, err error) {
		expect.Equal(t, "error", err, nil)
		v["is"] = "spoilt"
	}
	spoil(Get(ctx, f.guards[0], "k", made))
	many, err := GetMany(ctx, f.guards[0], []string{"many"}, func(ctx context.Context, keys []string) (map[string]map[string]string, error) {
		v, err := made(ctx)
		return map[string]map[string]string{keys[0]: v}, err
	})
	spoil(many["many"], err)
	spoil(c[0].Get(ctx, "k"))
	text, err := Get(ctx, f.guards[0], "bytes", bytes)
	expect.Equal(t, "error", err, nil)
	copy(text, "spoil")
	f.stored()

	for _, key := range []string{"k", "many"} {
		v, err := Get(ctx, f.guards[1], key, unwanted[map[string]string](t))
		expect.Equal(t, key, fmt.Sprint(v, err), "map[is:right] <nil>")
	}
	v, err := c[1].Get(ctx, "k")
	expect.Equal(t, "of a Cache", fmt.Sprint(v, err), "map[is:right] <nil>")
	raw, err := Get(ctx, f.guards[1], "bytes", unwanted[[]byte](t))
	expect.Equal(t, "bytes", fmt.Sprint(string(raw), err), "right<nil>")
}

func FuzzTheDefaultCodecReadsAnything(f *testing.F) {
	f.Add([]byte(`{"Name":"tea","At":"2026-11-22T00:00:00Z","Any":[[[{}]]],"Next":{"Name":"cup"}}`))
	type thing struct {
		Name string
		At   time.Time
		Any  any
		Next *thing
	}
	for _, found := range []string{
		"\xb1", "\t0", "A", "\a", "1000", "0", "\tA", "\b", "1A", "f", "1.0A", "\"\"0",
	} {
		f.Add([]byte(found))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, into := range []any{new(any), new(thing), new([]thing), new(map[string]thing), new([]byte)} {
			_ = jsonCodec{}.Unmarshal(data, into) // must neither panic nor take the process down
		}
	})
}

func TestNewCacheRefusesWhatNeverComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	type job struct{ Done chan int }
	cfg := CacheConfig[int, []job]{Name: "job", Load: func(context.Context, int) ([]job, error) { return nil, nil }}
	_, err := NewCache(f.guards[0], cfg)
	expect.Says(t, err, "CacheConfig.Codec", "job.Done: a chan int")
	type drawing struct {
		Layers map[string][]*struct{ Of oddtypes.Shape }
	}
	_, err = NewCache(f.guards[0], CacheConfig[int, drawing]{Name: "drawing", Load: func(context.Context, int) (drawing, error) { return drawing{}, nil }})
	expect.Says(t, err, "drawing.Layers.Of: nothing says which type")
	cfg.Codec = exitCodec{} // it may know what nobody else does
	_, err = NewCache(f.guards[0], cfg)
	expect.Equal(t, "with a Codec", err, nil)
}
