package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestNewNamesEveryFieldThatIsOutOfRange(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Prefix: "a{b", TTL: -2, StaleFor: -time.Second, NegativeTTL: -3, Jitter: 1.5, EarlyRefresh: -2, LoadTimeout: -2,
		WaitTimeout: -2, LeaseTTL: time.Millisecond, MaxLoads: -2, MaxValueBytes: -2, RedisTimeout: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{
		"rdb", "Prefix", "TTL", "StaleFor", "NegativeTTL", "Jitter", "EarlyRefresh", "LoadTimeout", "WaitTimeout",
		"LeaseTTL", "MaxLoads", "MaxValueBytes", "RedisTimeout",
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

func TestNewRefusesAClientThatReadsFromReplicas(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true})
	defer rdb.Close()
	if _, err := New(rdb, Config{}); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("%v", err)
	}
}

func TestMinusOneSwitchesFeaturesOff(t *testing.T) {
	t.Parallel()
	cfg := Config{TTL: -1, StaleFor: -1, NegativeTTL: -1, Jitter: -1, EarlyRefresh: -1, LoadTimeout: -1, WaitTimeout: -1, MaxLoads: -1, MaxValueBytes: -1}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
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
	_, err := New(shared.Client(t), Config{TTL: 60, RedisTimeout: 500})
	if err == nil || !strings.Contains(err.Error(), "TTL: 60ns") || !strings.Contains(err.Error(), "RedisTimeout: 500ns") {
		t.Errorf("%v", err)
	}
}

func TestANilGuardSaysSo(t *testing.T) {
	t.Parallel()
	var g *Guard
	_, err := Get(context.Background(), g, "k", unwanted[string](t))
	_, errMany := GetMany(context.Background(), g, []string{"k"}, openShelf().load)
	for _, err := range []error{err, errMany, g.Invalidate(context.Background(), "k")} {
		if !errors.Is(err, errNilGuard) {
			t.Errorf("%v", err)
		}
	}
	expect.Equal(t, "Close", g.Close(), nil)
}

func TestAFailureOfRedisIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	f, proxy := broken(t, shared, Config{RedisTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))})
	proxy.On(steps["get"], redistest.ReplyError("LOADING not yet"))
	for range 20 {
		mustGet(t, f.guards[0], "k", returns("v"))
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "redis failed"); n < 1 || n > 19 || !strings.Contains(log.String(), "LOADING") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
