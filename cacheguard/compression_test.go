package cacheguard

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// deflate is a Compression of one format, by any name.
type deflate string

func (d deflate) Formats() string { return string(d) }

func (d deflate) Compress(payload []byte) []byte {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is one
	_, _ = w.Write(payload)
	_ = w.Close()
	return packed.Bytes()
}

func (d deflate) Decompress(_ byte, packed []byte, limit int) ([]byte, error) {
	payload, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(limit)+1))
	if len(payload) > limit {
		err = errors.New("too large")
	}
	return payload, err
}

// faulty is a Compression that panics.
type faulty struct{ deflate }

func (faulty) Compress([]byte) []byte                       { panic("compress") }
func (faulty) Decompress(byte, []byte, int) ([]byte, error) { panic("decompress") }

var long = strings.Repeat("what is said twice can be said shorter. ", 100)

// packed is how the key's value is compressed in Redis.
func (f *fleet) packed(key string) string {
	f.t.Helper()
	raw, err := f.redis.Get(context.Background(), f.value(key)).Bytes()
	expect.Must(f.t, err)
	return string(protocol.PackedAs(raw))
}

// mixed starts an instance for each compression, with a common prefix.
func mixed(t *testing.T, cfg Config, all ...Compression) *fleet {
	t.Helper()
	cfg.Compression = all[0]
	f := newFleet(t, standalone(t), 1, cfg)
	cfg.Prefix, cfg.Observers = f.guards[0].cfg.Prefix, f.guards[0].cfg.Observers
	for _, c := range all[1:] {
		cfg.Compression = c
		f.guards = append(f.guards, newGuard(t, shared.Client(t), cfg))
	}
	return f
}

func TestEveryKindOfValueIsCompressed(t *testing.T) {
	t.Parallel()
	type page struct{ Text string }
	f := mixed(t, Config{}, deflate("x"))
	g := f.guards[0]
	for range 2 { // loaded, and read
		expect.Equal(t, "string", mustGet(t, g, "string", returns(long)), long)
		expect.Equal(t, "bytes", string(mustGet(t, g, "bytes", returns([]byte(long)))), long)
		expect.Equal(t, "struct", mustGet(t, g, "struct", returns(page{long})), page{long})
		many, err := GetMany(t.Context(), g, []string{"many"}, func(context.Context, []string) (map[string]string, error) {
			return map[string]string{"many": long}, nil
		})
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "many", many["many"], long)
		f.stored()
	}
	for _, key := range []string{"string", "bytes", "struct", "many"} {
		expect.Equal(t, key, f.packed(key), "x")
		size, err := f.redis.StrLen(t.Context(), f.value(key)).Result()
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "smaller", int(size) < len(long)/10, true)
	}
	expect.Equal(t, "loads", f.events.loads.Load(), 4)
}

func TestWhatDoesNotGetSmallerIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{}, deflate("x"))
	for range 2 {
		expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("short")), "short")
		expect.Equal(t, "empty", mustGet(t, f.guards[0], "empty", returns("")), "")
	}
	expect.Equal(t, "format", f.packed("k"), "n")
	expect.Equal(t, "format", f.packed("empty"), "n")
	expect.Equal(t, "loads", f.events.loads.Load(), 2)
}

func TestInstancesThatCannotReadOneAnothersFormatAgreeOnNone(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Compression{"another": deflate("y"), "none": nil}, func(t *testing.T, _ string, other Compression) {
		f := mixed(t, Config{}, deflate("x"), other)
		for range 5 {
			for _, g := range f.guards {
				expect.Equal(t, "value", mustGet(t, g, "k", returns(long)), long)
			}
		}
		expect.Equal(t, "format", f.packed("k"), "n")
		expect.Equal(t, "loads", f.events.loads.Load(), 2)
		expect.Equal(t, "damaged, or told so", f.told().damaged.Load() > 0, true)
	})
}

func TestAFormatThatOthersWroteIsReadAndReplacedByTheOwn(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{}, deflate("x"), deflate("yx"))
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns(long)), long)
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), long)
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns(long)), long)
	expect.Equal(t, "format", f.packed("k"), "y")
}

func TestAPushedEntryInAFormatThatIsNotReadIsLoadedAgain(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{}, deflate("x"), deflate("y")).listening()
	s := newSource(long)
	first := async(f.guards[0], "k", s.load)
	<-s.begun
	second := async(f.guards[1], "k", returns(long))
	f.awaitRegistered("k", 1)
	close(s.release)
	want(t, first, long)
	want(t, second, long)
	f.stored()
	expect.Equal(t, "format", f.packed("k"), "n")
	for _, g := range f.guards {
		expect.Equal(t, "value", mustGet(t, g, "k", unwanted[string](t)), long)
	}
}

func TestAnEntryThatIsTooLargeDecompressedIsNotUsed(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{}, deflate("x"))
	g := newGuard(t, shared.Client(t), Config{
		Prefix: f.guards[0].cfg.Prefix, Compression: deflate("x"), MaxValueBytes: len(long) - 1, Observers: f.events.observers(t),
	})
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns(long)), long)
	expect.Equal(t, "value", mustGet(t, g, "k", returns("short")), "short")
	expect.Equal(t, "damaged", f.told().damaged.Load() > 0, true)
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", unwanted[string](t)), "short")
}

func TestACompressionThatPanicsCostsOnlyTheCompression(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{}, deflate("x"), faulty{deflate("x")})
	expect.Equal(t, "value", mustGet(t, f.guards[1], "a", returns(long)), long)
	expect.Equal(t, "format", f.packed("a"), "n")
	expect.Equal(t, "value", mustGet(t, f.guards[0], "b", returns(long)), long)
	expect.Equal(t, "value", mustGet(t, f.guards[1], "b", returns(long)), long)
	expect.Equal(t, "format", f.packed("b"), "n")
	expect.Equal(t, "loads", f.events.loads.Load(), 3)
}

func TestAValueThatStaysInTheLocalTierCountsAsItIsDecompressed(t *testing.T) {
	t.Parallel()
	f := mixed(t, Config{Local: LocalConfig{MaxBytes: len(long)}}, deflate("x")).listening()
	g := f.guards[0]
	mustGet(t, g, "k", returns(long))
	for range 3 {
		mustGet(t, g, "k", unwanted[string](t))
	}
	expect.Equal(t, "hits", f.events.count(Hit), 3) // there is no room for it
	expect.Equal(t, "local", f.events.count(Local), 0)
}

func TestNewRefusesACompressionWhoseFormatsHaveNoName(t *testing.T) {
	t.Parallel()
	for _, formats := range []string{"", "n", "xn", "X", "x y", "ü"} {
		expect.Says(t, expect.Err(New(shared.Client(t), Config{Compression: deflate(formats)})), "Config.Compression")
	}
}

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
