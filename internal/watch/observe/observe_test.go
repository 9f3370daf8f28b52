package observe

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestCountsOfAllProcessorsAddUp(t *testing.T) {
	t.Parallel()
	var c Counts
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1600 {
				c.Add(i % Words)
			}
		})
	}
	all.Wait()
	for word, n := range c.Sum() {
		expect.Equal(t, fmt.Sprint("word ", word), n, 800)
	}
}

func TestOneIsNotMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 loads wait", 1: "1 load waits", 2: "2 loads wait"} {
		expect.Equal(t, "count", Count(n, "load waits", "loads wait"), want)
	}
}

type (
	house  struct{ windows int }
	garden struct{}
	front  struct{ windows int }
	back   struct{}
)

func TestAValueIsSeenAsItsPackageSaidAndAsNothingElse(t *testing.T) {
	Register(func(h *house) front { return front{h.windows} })
	if seen, known := Look[front](&house{windows: 3}); !known || seen.windows != 3 {
		t.Errorf("a registered type: %v, %v", seen, known)
	}
	if _, known := Look[back](&house{}); known {
		t.Error("a registered type is seen as what it was not registered as")
	}
	for _, stranger := range []any{&garden{}, house{}, nil} {
		if _, known := Look[front](stranger); known {
			t.Errorf("%T is known", stranger)
		}
	}
}
