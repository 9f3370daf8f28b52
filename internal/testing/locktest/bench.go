package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"
)

// bench is one test's place of work.
type bench struct {
	*testing.T

	kind   Kind
	server Server
	prefix string
}

func newBench(t *testing.T, kind Kind, server Server) *bench {
	return &bench{t, kind, server, "test-" + rand.Text()}
}

// config is for Lockers that lose nothing when the machine stands still for a while.
func (b *bench) config() Config {
	return Config{Prefix: b.prefix, TTL: 30 * time.Second, Timeout: 10 * time.Second}
}

// short is for those whose leases are to end.
func (b *bench) short() Config {
	return Config{Prefix: b.prefix, TTL: b.kind.TTL, Timeout: b.kind.TTL / 2}
}

// longer is for leases that are to outlive an election, if there are any.
func (b *bench) longer() Config {
	ttl := 5 * b.kind.TTL
	if b.kind.Light {
		ttl = 3 * b.kind.TTL
	}
	return Config{Prefix: b.prefix, TTL: ttl, Timeout: ttl / 2}
}

func (b *bench) open() Locks { return b.kind.Open(b, b.server.Addr, b.config()) }

// lock asks again when nobody answers in the short time that some Lockers give their server, because the machine stands still.
func (b *bench) lock(k Locks) (l Lease) {
	b.Helper()
	await(b, "a lock", func() bool {
		var err error
		if l, err = k.Lock(patient(b), "x"); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			b.Fatal(err)
		}
		return err == nil
	})
	return l
}

func (b *bench) unlock(l Lease) {
	b.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// awaitAsking waits until that many hold the lock or wait for it. It tells whether the store can say.
func (b *bench) awaitAsking(n int) bool {
	b.Helper()
	if b.kind.Asking == nil {
		return false
	}
	await(b, "so many hold the lock or wait", func() bool { return b.kind.Asking(b, b.server.Addr, b.prefix, "x") == n })
	return true
}

// renewed waits until a lease is trusted for so much longer, or has ended, or the next one has an answer.
func (b *bench) renewed(l Lease, next <-chan outcome, by time.Duration) {
	b.Helper()
	trusted := l.TrustedUntil()
	await(b, "the lease is renewed", func() bool {
		return l.TrustedUntil().Sub(trusted) >= by || l.Context().Err() != nil || len(next) > 0
	})
}

type outcome struct {
	lease Lease
	err   error
}

// contested is a lock that a Locker has, and that another one waits for.
func (b *bench) contested(k Locks) (l Lease, next <-chan outcome) {
	b.Helper()
	l = b.lock(k)
	next = b.ask(patient(b), b.open())
	b.awaitAsking(2)
	return l, next
}

// ask starts a Lock.
func (b *bench) ask(ctx context.Context, k Locks) <-chan outcome {
	result := make(chan outcome, 1)
	go func() { // owner: the test; ends with the Lock; joined by receiving, or by Close
		l, err := k.Lock(ctx, "x")
		result <- outcome{l, err}
	}()
	return result
}

func (b *bench) granted(result <-chan outcome) Lease {
	b.Helper()
	select {
	case o := <-result:
		if o.err != nil {
			b.Fatal(o.err)
		}
		return o.lease
	case <-patient(b).Done():
		b.Fatal("the lock was not granted")
		return nil
	}
}
