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
