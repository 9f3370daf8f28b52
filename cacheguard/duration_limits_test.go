package cacheguard

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTheLongestDurationsDoNotOverflow(t *testing.T) {
	t.Parallel()
	t.Run("LoadTimeout", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{LoadTimeout: math.MaxInt64})
		mustGet(t, f.guards[0], "k", returns("v"))
		expect.Equal(t, "stored", f.exists(f.value("k")), true)
	})
	t.Run("TTL", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{TTL: math.MaxInt64, Jitter: -1})
		mustGet(t, f.guards[0], "k", returns("v"))
		expect.Equal(t, "stored", f.exists(f.value("k")), true)
	})
	t.Run("TTL+StaleFor", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour, StaleFor: math.MaxInt64})
		mustGet(t, f.guards[0], "k", returns("v"))
		expect.Equal(t, "stored", f.exists(f.value("k")), true)
	})
	t.Run("LeaseTTL", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{LeaseTTL: math.MaxInt64})
		mustGet(t, f.guards[0], "k", returns("v"))
		expect.Equal(t, "stored", f.exists(f.value("k")), true)
	})
	t.Run("SetTTL", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{StaleFor: time.Hour, Jitter: -1})
		mustGet(t, f.guards[0], "k", func(ctx context.Context) (string, error) { SetTTL(ctx, math.MaxInt64-1); return "v", nil })
		expect.Equal(t, "stored", f.exists(f.value("k")), true)
	})
	t.Run("100 years fresh", func(t *testing.T) {
		f := newFleet(t, standalone(t), 1, Config{TTL: 100 * 365 * 24 * time.Hour, StaleFor: time.Hour, Jitter: -1})
		mustGet(t, f.guards[0], "k", returns("v"))
		expect.Equal(t, "v", mustGet(t, f.guards[0], "k", unwanted[string](t)), "v")
	})
}
