package cacheguardtest_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
)

// BenchmarkATest is what a test of ten Gets takes, of five keys.
func BenchmarkATest(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		func() {
			t := &inner{TB: b}
			defer t.end()
			env := cacheguardtest.New(t, cacheguard.Config{Prefix: "bench", TTL: time.Minute})
			for i := range 10 {
				if _, err := cacheguard.Get(context.Background(), env.Guard, strconv.Itoa(i%5), func(context.Context) (int, error) { return i, nil }); err != nil {
					b.Fatal(err)
				}
			}
		}()
	}
}

// inner is a test that ends within a benchmark.
type inner struct {
	testing.TB
	ends []func()
}

func (t *inner) Cleanup(f func()) { t.ends = append(t.ends, f) }

func (t *inner) end() {
	for i := range t.ends {
		t.ends[len(t.ends)-1-i]()
	}
}
