package mutex

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, fair := range []bool{false, true} {
		var ks []*Locker
		for range 4 {
			k, err := New(shared.Client(t), Config{Prefix: t.Name(), Fair: fair})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			ks = append(ks, k)
		}
		before := shared.Commands()
		n, last := 0, int64(0)
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 16 {
			wg.Go(func() {
				for range 50 {
					l, err := ks[i%4].Lock(ctx, "a")
					if err != nil {
						t.Error(err)
						return
					}
					n++
					if l.Fence() <= last {
						t.Error("fence", l.Fence(), last)
					}
					last = l.Fence()
					if err := l.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		t.Log(n, time.Since(start))
		for c, x := range shared.Commands() {
			t.Log(c, float64(x-before[c])/800)
		}
		t.Log(ks[0].Inspect(ctx, "a"))
	}
}

func BenchmarkUncontended(b *testing.B) {
	k, _ := New(shared.Client(b), Config{Prefix: b.Name()})
	defer k.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		l, err := k.Lock(ctx, "a")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
