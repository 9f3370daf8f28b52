package rwlock

import (
	"context"
	"testing"
	"time"
)

// BenchmarkLockUnlock locks and unlocks a lock that nobody else wants.
func BenchmarkLockUnlock(b *testing.B) {
	k, err := New(shared.Client(b), Config{Prefix: "bench", TTL: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		l, err := k.Lock(context.Background(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
