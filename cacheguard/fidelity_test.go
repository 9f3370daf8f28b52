package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

func TestAValueThatDoesNotComeBackAsItWasIsToldOnceAndCounted(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.RedisTimeout = bearing
	f := newFleet(t, standalone(t), 1, cfg)
	g := f.guards[0]
	c := newCaches(t, f, CacheConfig[int, map[string]any]{Name: "any", Load: func(_ context.Context, id int) (map[string]any, error) {
		return map[string]any{"count": id}, nil
	}})[0]
	for id := range 3 {
		_, err := c.Get(t.Context(), id)
		expect.Equal(t, "error", err, nil)
	}
	f.stored()
	expect.Equal(t, "counted", g.Stats().Altered, 3)
	expect.Equal(t, "stored", f.exists(f.value("any:1")), true)
	expect.Equal(t, "lines", strings.Count(text(), "does not come back"), 1)
	for _, part := range []string{"kind=any", "key=any:0", `field="map[string]interface {}[…]"`, "a int comes back as a float64"} {
		expect.Equal(t, part, strings.Contains(text(), part), true)
	}
	expect.Equal(t, "Put", c.Put(t.Context(), 9, func(context.Context) (map[string]any, error) { return map[string]any{"count": 9}, nil }), nil)
	expect.Equal(t, "counted, with that of a Put", g.Stats().Altered, 4)
}

// An encoding of its own, or of what it embeds, may leave out a field.
func TestAValueWhoseOwnEncodingLosesAFieldIsCounted(t *testing.T) {
	t.Parallel()
	type opening struct {
		time.Time
		Name string
	}
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	c := newCaches(t, f, CacheConfig[int, opening]{Name: "opening", Load: func(context.Context, int) (opening, error) {
		return opening{time.Now(), "fair"}, nil
	}})[0]
	_, err := c.Get(t.Context(), 1)
	expect.Equal(t, "error", err, nil)
	f.stored()
	expect.Equal(t, "altered", f.guards[0].Stats().Altered, 1)
}

// Else each Get would load, on each instance, for ever, and nobody would know why.
func TestAValueThatCannotBeDecodedIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	caches := newCaches(t, f, CacheConfig[int, oneWay]{Name: "drawing", Load: func(context.Context, int) (oneWay, error) {
		return oneWay{oddtypes.Square{Side: 2}}, nil
	}})
	for i := range 20 { // more than the first ones
		v, err := caches[i%2].Get(t.Context(), 1)
		expect.Equal(t, "error", err, nil)
		expect.Equal(t, "area", v.Of.Area(), 4.)
		f.stored()
	}
	expect.Equal(t, "stored", f.exists(f.value("drawing:1")), false)
	expect.Equal(t, "unstorable", f.events.unstorable.Load(), 20)
	expect.Equal(t, "damaged", f.events.damaged.Load(), 0)
}

// oneWay can be encoded, and not decoded.
type oneWay struct{ Of oddtypes.Square }

func (w oneWay) MarshalText() ([]byte, error) { return fmt.Append(nil, w.Of.Side), nil }
func (*oneWay) UnmarshalText([]byte) error    { return errors.New("there is no way back") }

func TestNewCacheRefusesWhatNeverComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	type job struct{ Done chan int }
	cfg := CacheConfig[int, []job]{Name: "job", Load: func(context.Context, int) ([]job, error) { return nil, nil }}
	_, err := NewCache(f.guards[0], cfg)
	if err == nil || !strings.Contains(err.Error(), "CacheConfig.Codec") || !strings.Contains(err.Error(), "job.Done: a chan int") {
		t.Errorf("error %v", err)
	}
	type drawing struct {
		Layers map[string][]*struct{ Of oddtypes.Shape }
	}
	_, err = NewCache(f.guards[0], CacheConfig[int, drawing]{Name: "drawing", Load: func(context.Context, int) (drawing, error) { return drawing{}, nil }})
	if err == nil || !strings.Contains(err.Error(), "drawing.Layers.Of: nothing says which type") {
		t.Errorf("error %v", err)
	}
	cfg.Codec = exitCodec{} // it may know what nobody else does
	_, err = NewCache(f.guards[0], cfg)
	expect.Equal(t, "with a Codec", err, nil)
}

func TestTimesAndNumbersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	type event struct {
		At    time.Time
		Notes []string
	}
	c := newCaches(t, f, CacheConfig[int, event]{Name: "event", Load: func(context.Context, int) (event, error) {
		return event{time.Now(), nil}, nil
	}})[0]
	for id := range 5 {
		_, err := c.Get(t.Context(), id)
		expect.Equal(t, "error", err, nil)
	}
	f.stored()
	expect.Equal(t, "altered", f.guards[0].Stats().Altered, 0)
}
