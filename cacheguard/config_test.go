package cacheguard

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestNewNamesEveryFieldThatIsOutOfRange(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Prefix: "a{b", TTL: -2, StaleFor: -time.Second, NegativeTTL: -3, FailureTTL: 6 * time.Second, Jitter: 1.5, EarlyRefresh: -2, LoadTimeout: -2,
		WaitTimeout: -2, LeaseTTL: time.Millisecond, MaxLoads: -2, MaxValueBytes: -2, RedisTimeout: -1,
	})
	expect.Says(t, err, "rdb", "Prefix", "TTL", "StaleFor", "NegativeTTL", "FailureTTL", "Jitter", "EarlyRefresh", "LoadTimeout", "WaitTimeout",
		"LeaseTTL", "MaxLoads", "MaxValueBytes", "RedisTimeout")
}

func TestNewRefusesAClientThatReadsFromReplicas(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true})
	defer rdb.Close()
	expect.Says(t, expect.Err(New(rdb, Config{})), "replicas")
}

func TestMinusOneSwitchesFeaturesOff(t *testing.T) {
	t.Parallel()
	cfg := Config{TTL: -1, StaleFor: -1, NegativeTTL: -1, FailureTTL: -1, Jitter: -1, EarlyRefresh: -1, LoadTimeout: -1, WaitTimeout: -1, MaxLoads: -1, MaxValueBytes: -1}
	expect.Must(t, cfg.check())
	cfg = cfg.withDefaults()
	expect.Equal(t, "TTL", cfg.TTL, 0)
	expect.Equal(t, "StaleFor", cfg.StaleFor, 0)
	expect.Equal(t, "NegativeTTL", cfg.NegativeTTL, 0)
	expect.Equal(t, "Jitter", cfg.Jitter, 0)
	expect.Equal(t, "EarlyRefresh", cfg.EarlyRefresh, 0)
	expect.Equal(t, "LoadTimeout", cfg.LoadTimeout, off)
	expect.Equal(t, "WaitTimeout", cfg.WaitTimeout, off)
	expect.Equal(t, "MaxLoads", cfg.MaxLoads, off)
	expect.Equal(t, "MaxValueBytes", cfg.MaxValueBytes, off)
}

func TestTTLsAreShortenedByUpToJitter(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour, Jitter: 0.5})
	shortest, longest := time.Hour, time.Duration(0)
	for i := range 50 {
		key := fmt.Sprint("k", i)
		mustGet(t, f.guards[0], key, returns("v"))
		ttl := f.redis.PTTL(context.Background(), f.value(key)).Val()
		shortest, longest = min(shortest, ttl), max(longest, ttl)
	}
	if shortest < 29*time.Minute || longest > time.Hour || longest-shortest < 10*time.Minute {
		t.Errorf("TTLs from %v to %v", shortest, longest)
	}
}

func TestADurationWithoutItsUnitIsRefused(t *testing.T) {
	t.Parallel()
	expect.Says(t, expect.Err(New(shared.Client(t), Config{TTL: 60, RedisTimeout: 500})), "TTL: 60ns", "RedisTimeout: 500ns")
}

func TestANilGuardSaysSo(t *testing.T) {
	t.Parallel()
	var g *Guard
	_, err := Get(context.Background(), g, "k", unwanted[string](t))
	_, errMany := GetMany(context.Background(), g, []string{"k"}, openShelf().load)
	for _, err := range []error{err, errMany, g.Invalidate(context.Background(), "k")} {
		expect.ErrorIs(t, err, errNilGuard)
	}
	expect.Equal(t, "Close", g.Close(), nil)
}

func TestAFailureOfRedisIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	cfg.RedisTimeout = time.Minute
	f, proxy := broken(t, shared, cfg)
	proxy.On(steps["get"], redistest.ReplyError("LOADING not yet"))
	for range 20 {
		mustGet(t, f.guards[0], "k", returns("v"))
	}
	if n := strings.Count(log(), "redis "); n < 1 || n > 19 || !strings.Contains(log(), "LOADING") {
		t.Errorf("%d lines: %s", n, log())
	}
}

// needy is what the text of a setting says when it does nothing without another.
var needy = regexp.MustCompile(`\b(it|It)\s+needs\b`)

// A setting that is ignored is a mistake that nobody sees.
func TestWhatNeedsAnotherSettingIsRefusedWithoutIt(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing}).guards[0]
	load := func(context.Context, int) (int, error) { return 1, nil }
	refusals := map[string]error{}
	for field, test := range map[string]struct {
		cfg  CacheConfig[int, int]
		need string
	}{
		"CacheConfig.Patience": {CacheConfig[int, int]{Patience: time.Second}, "StaleFor"},
	} {
		test.cfg.Name, test.cfg.Load = "thing", load
		_, err := NewCache(g, test.cfg)
		expect.Says(t, err, field, test.need)
		refusals[field] = err
	}
	expect.Equal(t, "settings that need another, by their texts", strings.Join(needySettings(t, ".."), " "), strings.Join(slices.Sorted(maps.Keys(refusals)), " "))

	_, err := NewCache(g, CacheConfig[int, int]{Name: "own", Load: load, Patience: time.Second, StaleFor: time.Minute})
	expect.Equal(t, "with a StaleFor of its own", err, nil)
	_, err = NewCache(g, CacheConfig[int, int]{Name: "off", Load: load, Patience: -1})
	expect.Equal(t, "without Patience", err, nil)
	stale := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, StaleFor: time.Minute}).guards[0]
	_, err = NewCache(stale, CacheConfig[int, int]{Name: "guards", Load: load, Patience: time.Second})
	expect.Equal(t, "with the Guard's StaleFor", err, nil)
	_, err = NewCache(stale, CacheConfig[int, int]{Name: "off", Load: load, Patience: time.Second, StaleFor: -1})
	expect.Equal(t, "switched off", err != nil, true)
}

// needySettings are the fields of each exported struct whose name ends with Config below the folder, by what their comments say.
func needySettings(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			for i := 0; ok && i < len(fields.Fields.List); i++ {
				if f := fields.Fields.List[i]; len(f.Names) > 0 && needy.MatchString(f.Doc.Text()) {
					found = append(found, spec.Name.Name+"."+f.Names[0].Name)
				}
			}
			return true
		})
		return nil
	})
	expect.Equal(t, "error", err, nil)
	slices.Sort(found)
	return found
}

func TestTheLongestDurationsDoNotOverflow(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"LoadTimeout":     {LoadTimeout: math.MaxInt64},
		"TTL":             {TTL: math.MaxInt64, Jitter: -1},
		"TTL+StaleFor":    {TTL: time.Hour, StaleFor: math.MaxInt64},
		"LeaseTTL":        {LeaseTTL: math.MaxInt64},
		"SetTTL":          {StaleFor: time.Hour, Jitter: -1},
		"100 years fresh": {TTL: 100 * 365 * 24 * time.Hour, StaleFor: time.Hour, Jitter: -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, standalone(t), 1, cfg)
			mustGet(t, f.guards[0], "k", func(ctx context.Context) (string, error) {
				if name == "SetTTL" {
					SetTTL(ctx, math.MaxInt64-1)
				}
				return "v", nil
			})
			expect.Equal(t, "stored", f.exists(f.value("k")), true)
			expect.Equal(t, "v", mustGet(t, f.guards[0], "k", unwanted[string](t)), "v")
		})
	}
}
