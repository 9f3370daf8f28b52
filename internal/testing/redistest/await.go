package redistest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Patience is how long a test waits for a fact, and the RedisTimeout and the lease of what is no test of them: a machine may be busy,
	// and only a test that fails waits for all of it.
	Patience = time.Minute

	// Brisk is for tests in which the time has to be up. A machine that is busy, or stands still for some 100 ms, keeps it all the same.
	Brisk = 2 * time.Second

	// A test asks often for what comes at once, and seldom for what takes seconds: dozens of tests wait side by side.
	pollAtFirst, pollAtLast = 5 * time.Millisecond, 50 * time.Millisecond

	awaitTimeout = Patience
)

// Await returns when cond is true, and fails the test if that takes too long. what says what was awaited.
func Await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	err := await(ctx, func() error {
		if !cond() {
			return errors.New(what)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// Patiently is the context of the test, with a deadline for what has less patience without.
func Patiently(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	tb.Cleanup(cancel)
	return ctx
}

// AwaitNoLease returns when no load of a Guard with the prefix is under way or being stored.
func AwaitNoLease(tb testing.TB, rdb *redis.Client, prefix string) {
	tb.Helper()
	Await(tb, "no lease is held", func() bool {
		keys, err := rdb.Keys(tb.Context(), prefix+"*").Result()
		for _, key := range keys {
			if held, is := rdb.HExists(tb.Context(), key, "token").Result(); is == nil && held {
				return false
			}
		}
		return err == nil
	})
}

// Later returns when the clock of the machine, which its servers use, too, has moved on by more than requests take.
// Afterwards, an order by the time at a server is certain.
func Later() { <-time.After(250 * time.Millisecond) }

// final is an error that asking again will not mend.
type final struct{ error }

// await asks until check returns nil or a final error, and gives up with check's last error when ctx ends.
func await(ctx context.Context, check func() error) error {
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return nil
		}
		var f final
		if errors.As(err, &f) {
			return f.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redistest: gave up waiting: %w", err)
		case <-time.After(min(pollAtLast, max(pollAtFirst, time.Since(began)/10))):
		}
	}
}
