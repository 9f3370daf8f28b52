package cacheguard

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const little = 1 << 10 // a MaxValueBytes

func TestAValueThatIsLargerThanAnyEntryIsReplaced(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", 1<<20)
	f := newFleet(t, standalone(t), 2, Config{MaxValueBytes: -1})
	g := newGuard(t, f.redis, Config{Prefix: f.guards[0].cfg.Prefix, MaxValueBytes: little})
	mustGet(t, f.guards[0], "k", returns(whole)) // an entry, and intact
	f.stored()
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), whole)
	expect.Equal(t, "value", mustGet(t, g, "k", returns("short")), "short")
	redistest.Await(t, "it is replaced", func() bool {
		n := f.redis.StrLen(t.Context(), f.value("k")).Val()
		return n > 0 && n < little
	})
	values, err := GetMany(t.Context(), g, []string{"k", "k2"}, func(_ context.Context, keys []string) (map[string]string, error) {
		expect.Equal(t, "keys that are loaded", strings.Join(keys, " "), "k2")
		return map[string]string{"k2": "v2"}, nil
	})
	expect.ErrorIs(t, err)
	expect.Equal(t, "values", values["k"]+" "+values["k2"], "short v2")
}

func TestAValueOfMaxValueBytesWithManyTagsIsRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{MaxValueBytes: little})
	whole := strings.Repeat("x", little)
	mustGet(t, f.guards[0], "k", func(ctx context.Context) (string, error) {
		for i := range 60 {
			SetTags(ctx, strings.Repeat(string(rune('A'+i)), 200))
		}
		return whole, nil
	})
	f.stored()
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), whole)
}

// A string of 500 MB takes longer than RedisTimeout: no Get would ever have it, and each would read it again.
func TestAValueThatIsTooLargeToBeReadInTimeIsRemoved(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{MaxValueBytes: little, RedisTimeout: brisk}, proxy.Client(t))
	g := f.guards[0]
	for _, command := range []string{"get", "mget"} {
		proxy.On(redistest.Command(command), redistest.SwallowReply)
	}
	for key, size := range map[string]int{"large": 1 << 20, "entry": little} {
		f.redis.Set(t.Context(), f.value(key), strings.Repeat("x", size), time.Minute)
		v, how, err := get(t.Context(), g, key, returns("v"))
		expect.ErrorIs(t, err)
		expect.Equal(t, "answer", v+" "+string(how), "v bypassed")
		redistest.Await(t, "it was looked at", func() bool { return g.dropping.Load() == 0 })
		expect.Equal(t, key+" is there", f.exists(f.value(key)), size == little)
	}
}
