package main

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// embedded returns a client of an embedded Redis of the test's own.
func embedded(t *testing.T) *redis.Client {
	t.Helper()
	t.Setenv("REDIS_URL", "")
	server, err := backends.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := server.NewClient()
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestTheWatcherCountsReturnsAndNotLooks(t *testing.T) {
	rdb := embedded(t)
	w := &watcher{rdb: rdb, key: "entry", lastLook: time.Now()}
	for step, there := range []bool{true, true, false, false, true, true, false, true, false} {
		var err error
		if there {
			err = rdb.Set(t.Context(), "entry", "", time.Hour).Err()
		} else {
			err = rdb.Del(t.Context(), "entry").Err()
		}
		if err != nil || !w.look(t.Context()) {
			t.Fatalf("step %d: %v, %v", step, err, w.err)
		}
	}
	if got := w.expiries.Load(); got != 2 {
		t.Errorf("counted %d expiries, want 2: the entry came back twice", got)
	}
}

func TestTheWatcherSeesWhatWasStoredBeforeItsEnd(t *testing.T) {
	rdb := embedded(t)
	w := watch(t.Context(), rdb, "entry")
	if err := rdb.Set(t.Context(), "entry", "", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.end(); err != nil {
		t.Fatal(err)
	}
	if w.gone {
		t.Error("it took the entry for gone")
	}
}

func TestAWatcherThatCannotSeeSaysSo(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	if _, _, err := watch(t.Context(), rdb, "entry").end(); err == nil {
		t.Error("no error")
	}
}
