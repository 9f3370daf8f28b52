package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/hottest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// askOften asks the Guard for the key so often.
func askOften(t *testing.T, g *Guard, key string, times int) {
	t.Helper()
	for range times {
		mustGet(t, g, key, func(context.Context) (string, error) { return "v", nil })
	}
}

func TestTheHottestKeysAreThoseOfTheFleet(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*testing.T) arena{"standalone": standalone, "few rights": withFewRights, "cluster": onCluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Hottest: 10, Local: LocalConfig{MaxEntries: 100}}
			f := newFleet(t, build(t), 3, cfg).listening()
			for i := range 2 {
				often := f.guards[i].hottest.Config
				often.Every = time.Millisecond
				f.guards[i].hottest = hottest.New(often)
			}
			asker := f.guards[2] // was asked for nothing
			var top []string
			redistest.Await(t, "both have told", func() bool {
				askOften(t, f.guards[0], "cold", 100)
				askOften(t, f.guards[0], "warm", 400)
				askOften(t, f.guards[1], "hot", 1600)
				var err error
				top, err = asker.Hottest(context.Background(), 10)
				return err == nil && strings.Join(top, " ") == "hot warm cold"
			})
			first, err := asker.Hottest(context.Background(), 1)
			expect.Equal(t, "one", fmt.Sprint(first, err), "[hot] <nil>")
			f.guards[1].hottest.Every = time.Hour
			askOften(t, f.guards[1], "last", 1600)
			_ = f.guards[1].Close()
			top, err = asker.Hottest(context.Background(), 10)
			expect.Equal(t, "also of an instance that is closed", fmt.Sprint(slices.Contains(top, "last"), err), "true <nil>")
		})
	}
}

func TestWithoutHottestNothingIsCounted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	g.hottest.Every = 0
	askOften(t, g, "k", 200)
	top, err := g.Hottest(context.Background(), 10)
	expect.Equal(t, "hottest", fmt.Sprint(top, err), "[] <nil>")
}

func TestHottestRefusesWhatItCannotAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var none *Guard
	_, err := none.Hottest(context.Background(), 1)
	expect.ErrorIs(t, err, errNilGuard)
	server := redistest.Start(t)
	g := newGuard(t, server.Client(t), Config{})
	for _, n := range []int{0, 10_001} {
		if _, err := g.Hottest(context.Background(), n); err == nil || !strings.Contains(err.Error(), "between 1 and 10000") {
			t.Error(n, err)
		}
	}
	_, err = g.Hottest(ctx, 1)
	expect.ErrorIs(t, err, context.Canceled)
	server.Kill()
	if _, err := g.Hottest(context.Background(), 1); err == nil {
		t.Error("without Redis it answers")
	} else if _, is := errors.AsType[*RedisError](err); !is {
		t.Error(err)
	}
	_ = g.Close()
	_, err = g.Hottest(context.Background(), 1)
	expect.ErrorIs(t, err, ErrClosed)
	top, err := newGuard(t, nil, Config{Disabled: true, Hottest: 5}).Hottest(context.Background(), 1)
	expect.Equal(t, "disabled", fmt.Sprint(top, err), "[] <nil>")
	for _, n := range []int{-1, 1001} {
		if _, err := New(shared.Client(t), Config{Hottest: n}); err == nil || !strings.Contains(err.Error(), "Config.Hottest: ") {
			t.Error(n, err)
		}
	}
}
