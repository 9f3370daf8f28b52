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

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
)

func TestAStaleValueReadByALoaderTakesNoSlotForGood(t *testing.T) {
	t.Parallel()
	cfg := brief
	cfg.MaxLoads = 2
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	g := f.guards[0]
	for i := range 4 {
		inner := fmt.Sprint("inner", i)
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
		_, err := Get(ctx, g, inner, returns("old"))
		if err != nil {
			t.Fatalf("after %d nested refreshes: %v", i, err)
		}
		redistest.Await(t, "stale", func() bool {
			raw, err := f.redis.Get(ctx, f.value(inner)).Bytes()
			e, _ := protocol.DecodeEntry(inner, raw)
			return err == nil && g.freshness("k", &g.ordinary, e) == stale
		})
		_, err = Get(ctx, g, fmt.Sprint("outer", i), func(ctx context.Context) (string, error) {
			return Get(ctx, g, inner, returns("new"))
		})
		cancel()
		if err != nil {
			t.Fatalf("outer, after %d nested refreshes: %v", i, err)
		}
	}
}

func TestAbsenceFoundInTheBackgroundIsNoFailure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	cfg := brief
	cfg.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	f.makeStale("k", "old")
	_, _ = Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) { return "", ErrNotFound })
	redistest.Await(t, "absence is known", func() bool {
		_, err := Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) { return "", ErrNotFound })
		return errors.Is(err, ErrNotFound)
	})
	_ = f.guards[0].Close()
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), string(watch.Unrefreshed)) {
		t.Error(log.String())
	}
}

func TestATTLBelowAMillisecondIsStaleNotFreshForEver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{StaleFor: time.Hour, Jitter: -1}).knowClock()
	mustGet(t, f.guards[0], "k", func(ctx context.Context) (string, error) { SetTTL(ctx, 300*time.Microsecond); return "v", nil })
	hold(t, 20*time.Millisecond)
	mustGet(t, f.guards[0], "k", returns("w"))
	expect.Equal(t, "stale", f.events.count(Stale), 1)
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
