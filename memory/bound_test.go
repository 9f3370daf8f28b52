package memory

import (
	"bytes"
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
)

// TestAGuardLivesWithinItsBytes has a Guard load ten times what fits, while a lock is held.
func TestAGuardLivesWithinItsBytes(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	client, e, err := open(Config{MaxBytes: most})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	guard, err := cacheguard.New(client, cacheguard.Config{Prefix: "shop", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	locks, err := mutex.New(client, mutex.Config{Prefix: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	held, err := locks.TryLock(t.Context(), "name")
	expect.Equal(t, "lock", err, nil)

	get := func(i int, load func(context.Context) ([]byte, error)) []byte {
		value, err := cacheguard.Get(t.Context(), guard, "key:"+strconv.Itoa(i), load)
		expect.Equal(t, "error", err, nil)
		return value
	}
	for i := range 2000 {
		value := bytes.Repeat([]byte{byte(i)}, 5000)
		got := get(i, func(context.Context) ([]byte, error) { return value, nil })
		expect.Equal(t, "value", string(got), string(value))
		e.mu.Lock()
		used := e.keys.used
		e.mu.Unlock()
		if used > most {
			t.Fatalf("%d bytes are used", used)
		}
	}
	expect.Equal(t, "what does not fit is returned", len(get(-1, func(context.Context) ([]byte, error) { return make([]byte, 2*most), nil })), 2*most)
	expect.Equal(t, "the lock is still held", held.Unlock(t.Context()), nil)
}
