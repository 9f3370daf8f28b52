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
)

// everything is all that Redis has under the fleet's prefix, as text.
func (f *fleet) everything() string {
	var all strings.Builder
	for _, key := range f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+":*").Val() {
		all.WriteString(key + " " + f.redis.Dump(context.Background(), key).Val() + "\n")
	}
	return all.String()
}

// The count of failures stays, so that a database that is down is asked more and more rarely.
func TestTheTextOfAFailureIsInRedisForAsLongAsItCounts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	fail := func(context.Context) (string, error) { return "", errors.New("user=root password=hunter2") }
	fails := func(i int) *LoadError {
		_, err := Get(t.Context(), f.guards[i], "k", fail)
		failed, _ := errors.AsType[*LoadError](err)
		return failed
	}
	redistest.Await(t, "a failure is shared while it counts", func() bool {
		_ = fails(0) // which of the two loads does not matter
		failed := fails(1)
		return failed != nil && strings.Contains(failed.Message, "hunter2") && strings.Contains(f.everything(), "hunter2")
	})
	redistest.Await(t, "it does not count any more", func() bool { return mustInspect(t, f.guards[0], "k").Failure.Left == 0 })
	if left := f.left(f.lease("k") + ":error"); left > time.Millisecond {
		t.Errorf("the text is there for another %v", left)
	}
	redistest.Await(t, "the text is gone", func() bool { return !strings.Contains(f.everything(), "hunter2") })
	if failure := mustInspect(t, f.guards[0], "k").Failure; failure == nil || failure.InARow == 0 || failure.Message != "" {
		t.Errorf("%+v, want the count without the text", failure)
	}
}

func TestRedactErrorSaysWhatOthersGetOfAnError(t *testing.T) {
	t.Parallel()
	for name, redact := range map[string]func(error) string{
		"it redacts": func(error) string { return "load failed" },
		"it panics":  func(err error) string { panic(err) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 2, Config{RedactError: redact})
			secret := errors.New("password=hunter2")
			for _, fail := range []func(context.Context) (string, error){
				func(context.Context) (string, error) { return "", secret },
				func(context.Context) (string, error) { panic(secret) },
			} {
				tries := 0 // each with a key of its own: a failure that counts for longer and longer may be either instance's
				redistest.Await(t, "the other instance gets the failure", func() bool {
					tries++
					key := fmt.Sprint("k", tries)
					_, own := Get(t.Context(), f.guards[0], key, fail)
					counts := prolongFailure(f.redis, f.lease(key))
					if there := f.everything(); strings.Contains(there, "hunter2") {
						t.Fatalf("the text is in Redis: %q", there)
					}
					_, others := Get(t.Context(), f.guards[1], key, fail)
					failed, is := errors.AsType[*LoadError](others)
					return counts && strings.Contains(own.Error(), "hunter2") && is && failed.Message == "load failed"
				})
			}
		})
	}
}

func TestAFailureOfAnEarlierVersionOfTheLibraryIsShared(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "other", returns("v")) // a round trip
	now := f.redis.Time(t.Context()).Val().UnixMilli()
	f.redis.HSet(t.Context(), f.lease("k"), "deadline", now+60_000, "length", 60_000, "failed", "token", "error", "from before", "failures", 1)
	_, err := Get(t.Context(), f.guards[0], "k", unwanted[string](t))
	failed, _ := errors.AsType[*LoadError](err)
	expect.Equal(t, "message", failed.Message, "from before")
}

// Under an eviction policy Redis may lose the text alone. An error without a text helps nobody.
func TestAFailureWhoseTextIsLostIsForgotten(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "other", returns("v")) // a round trip
	now := f.redis.Time(t.Context()).Val().UnixMilli()
	f.redis.HSet(t.Context(), f.lease("k"), "deadline", now+60_000, "length", 60_000, "failed", "token", "failures", 1)
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("v")), "v")
}
