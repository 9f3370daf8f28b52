package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// logged returns a Config with a Logger, and what it has written.
func logged() (cfg Config, text func() string) {
	var mu sync.Mutex
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	return cfg, func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func TestOfLoadersThatPanicOneIsLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	panics := func(context.Context) (string, error) { panic("oops") }
	get := func(key string) {
		t.Helper()
		_, err := Get(context.Background(), g, key, panics)
		if !errors.As(err, new(*PanicError)) {
			t.Error(err)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		get(key)
	}
	expect.Equal(t, "lines", strings.Count(text(), "loader panicked"), 1)
	expect.Says(t, text(), "key=a", "panic=oops")
}

func TestOfValuesThatCannotBeStoredOneIsLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.MaxValueBytes = 1
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	for _, key := range []string{"a", "b", "c"} {
		mustGet(t, g, key, returns("too long"))
	}
	expect.Equal(t, "logged", strings.Count(text(), "cannot be stored"), 1)
}

func TestOfBackgroundLoadsThatFailOneIsLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.TTL, cfg.StaleFor, cfg.Jitter = brief.TTL, brief.StaleFor, brief.Jitter
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	f.makeStale("a", "old")
	f.makeStale("b", "old")
	var failed sync.Map
	redistest.Await(t, "both have failed", func() bool {
		for _, key := range []string{"a", "b"} {
			mustGet(t, f.guards[0], key, func(context.Context) (string, error) {
				failed.Store(key, true)
				return "", errors.New("down")
			})
		}
		_, a := failed.Load("a")
		_, b := failed.Load("b")
		return a && b && strings.Contains(text(), "background load failed")
	})
	_ = f.guards[0].Close() // joins the loads
	expect.Equal(t, "logged", strings.Count(text(), "background load failed"), 1)
}

func TestAFlushAllUnderLoadIsLoggedOnceAndAnInvalidateAllOfOnesOwnIsNot(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg, text := logged()
	f := newFleetOn(t, server.Client(t), cfg, server.Client(t))
	g := f.guards[0]
	load := func() {
		for i := range 30 {
			mustGet(t, g, fmt.Sprint("k", i%3), returns(i))
		}
	}
	load()
	expect.Equal(t, "error", g.InvalidateAll(context.Background()), nil)
	load()
	expect.Equal(t, "lines after InvalidateAll", strings.Count(text(), "entries are invalid or gone"), 0)
	expect.Equal(t, "error", server.Client(t).FlushAll(context.Background()).Err(), nil)
	redistest.Await(t, "it is logged", func() bool {
		load()
		return strings.Contains(text(), "entries are invalid or gone")
	})
	load()
	expect.Equal(t, "lines", strings.Count(text(), "entries are invalid or gone"), 1)
}

// attributes are the names of a line's, each as often as the line has it.
func attributes(line string) map[string]int {
	names := make(map[string]int)
	for _, attribute := range regexp.MustCompile(`([\w.]+)=("(\\.|[^"\\])*"|\S*)`).FindAllStringSubmatch(line, -1) {
		names[attribute[1]]++
	}
	return names
}

func TestALineAboutAnEntryOfACacheHasEachAttributeOnce(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.MaxValueBytes = 1
	f := newFleet(t, standalone(t), 1, cfg)
	c := newCaches(t, f, CacheConfig[int, string]{Name: "thing", Load: func(context.Context, int) (string, error) { return "too long", nil }})[0]
	f.wantOf(c, 1, "too long", nil)
	redistest.Await(t, "it is logged", func() bool { return len(lines(text(), "value cannot be stored")) == 1 })
	line := lines(text(), "value cannot be stored")[0]
	for name, n := range attributes(line) {
		expect.Equal(t, name, n, 1)
	}
	expect.Says(t, line, "cache="+f.guards[0].cfg.Prefix, "kind=thing", "key=thing:1")
}
