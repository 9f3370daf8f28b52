// The race detector sees nothing of WebAssembly, and its compiler takes minutes with it: make test-all runs this test without.

//go:build !race

package exact

import (
	"context"
	"strconv"
	"strings"
	"testing"
)

// few seeds have all kinds of plans among them: two and three instances, with and without local tiers, faults, batches and patience.
const few = 30

func TestOnlyTheSeedDecides(t *testing.T) {
	t.Parallel()
	fleet, err := Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for seed := range uint64(few) {
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			once, wrong, err := fleet.Run(t.Context(), seed)
			if err != nil || wrong || !strings.Contains(once, " messages, hash ") {
				t.Fatalf("%v\n%s", err, once)
			}
			again, _, err := fleet.Run(t.Context(), seed)
			if err != nil || again != once {
				t.Errorf("%v; once\n%s\nand again\n%s", err, once, again)
			}
		})
	}
	t.Run("a program that fails is wrong", func(t *testing.T) {
		t.Parallel()
		printed, wrong, err := fleet.run(t.Context(), 0, "no seed")
		if err != nil || !wrong || !strings.Contains(printed, `parsing "no seed"`) {
			t.Errorf("wrong %t, %v\n%s", wrong, err, printed)
		}
	})
}
