package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestAWriteThatIgnoresItsContextDoesNotHoldOthersUpForEver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: brisk, UpdateTimeout: brisk})
	db := newRow("old")
	begun, release, first := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the test; ends with Update; joined by receiving
		first <- f.guards[0].Update(context.Background(), "k", func(ctx context.Context) error {
			begun <- ctx
			<-release
			return nil
		})
	}()
	ctx := <-begun
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, rwlock.ErrLeaseLost) {
		t.Errorf("the context of write ended with %v", cause)
	}
	expect.Equal(t, "another Update", f.guards[1].Update(context.Background(), "k", db.write("new")), nil)
	redistest.Await(t, "loads store again", func() bool {
		expect.Equal(t, "Get", mustGet(t, f.guards[1], "k", db.load), "new")
		return f.exists(f.value("k"))
	})
	close(release)
	err := <-first
	if !errors.Is(err, rwlock.ErrLeaseLost) || !strings.Contains(err.Error(), fmt.Sprintf("UpdateTimeout (%v)", brisk)) {
		t.Error(err)
	}
	f.expectUntouched("k", "new", db) // what write may have written is not served from before
}

func TestAWriteWithinUpdateTimeoutHoldsItsLockHoweverLongTheLeaseIs(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"a minute": time.Minute, "no limit": off} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 1, Config{LeaseTTL: brisk, UpdateTimeout: limit})
			var err error
			for range 5 { // a process that has no processor for as long as a lease loses it
				if err = f.guards[0].Update(context.Background(), "k", func(ctx context.Context) error {
					hold(t, 5*brisk/2) // more than two leases
					held := f.exists(f.intent("k"))
					if ctx.Err() == nil {
						expect.Equal(t, "intent", held, true)
					}
					return ctx.Err()
				}); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
}

func TestUpdateTimeoutIsNotShorterThanALease(t *testing.T) {
	t.Parallel()
	if _, err := New(shared.Client(t), Config{UpdateTimeout: time.Second}); err == nil || !strings.Contains(err.Error(), "Config.UpdateTimeout") {
		t.Error(err)
	}
	expect.Equal(t, "default", Config{}.withDefaults().UpdateTimeout, time.Minute)
	expect.Equal(t, "default of a long lease", Config{LeaseTTL: time.Hour}.withDefaults().UpdateTimeout, time.Hour)
}
