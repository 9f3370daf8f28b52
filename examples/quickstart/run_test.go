package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

// The tests of this file use the real Redis and database that REDIS_URL and DATABASE_URL name, if they do.

// openStage opens the backends for one test.
func openStage(t *testing.T, s settings) stage {
	t.Helper()
	server, err := backends.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := backends.Database(t.Context(), s.query)
	if err != nil {
		t.Fatal(errors.Join(err, server.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return stage{redis: server, db: db, settings: s}
}

// until lets a run last until the entry has expired so many times.
func until(ctx context.Context, expiries int64) opening {
	return func(see func() sight) (context.Context, func()) {
		open, closing := context.WithCancel(ctx)
		seen := make(chan struct{})
		go func() { // owner: the run; stop: open; joined by over
			defer close(seen)
			for program.Pause(open, lookEvery) {
				if see().expiries >= expiries {
					closing()
				}
			}
		}()
		return open, func() {
			closing()
			<-seen
		}
	}
}

func TestWithTheGuardEachExpiryCostsOneQuery(t *testing.T) {
	st := openStage(t, settings{instances: 4, callers: 10, ttl: 150 * ms, query: 100 * ms})
	got, err := st.measure(t.Context(), openGuarded, until(t.Context(), 3))
	if err != nil {
		t.Fatal(err)
	}
	if why := got.broken(st.settings.query); why != "" {
		t.Error(why)
	}
	if got.commands == 0 || len(got.waits) == 0 {
		t.Errorf("%d commands and %d answers were counted", got.commands, len(got.waits))
	}
}

func TestByHandEachExpiryCostsMany(t *testing.T) {
	st := openStage(t, settings{instances: 4, callers: 10, ttl: 150 * ms, query: 100 * ms})
	got, err := st.measure(t.Context(), openByHand, until(t.Context(), 2))
	if err != nil {
		t.Fatal(err)
	}
	if got.failed > 0 || got.expiries == 0 || got.queries <= got.expiries {
		t.Errorf("%d queries for %d expiries, %d calls failed (%v)", got.queries, got.expiries, got.failed, got.err)
	}
}

func TestRunComparesBoth(t *testing.T) {
	var out, problems strings.Builder
	args := strings.Fields("-instances 3 -callers 5 -duration 800ms -ttl 150ms -query 100ms")
	if code := run(t.Context(), args, &out, &problems); code != exitOK {
		t.Errorf("exit code %d, want %d: %s\n%s", code, exitOK, problems.String(), out.String())
	}
	for _, want := range []string{"queries per expiry", "1 query with cacheguard"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	var problems strings.Builder
	if code := run(t.Context(), []string{"-instances", "0"}, io.Discard, &problems); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	if want := "quickstart: -instances: 0 is not between 1 and 64\n"; problems.String() != want {
		t.Errorf("it says %q, want %q", problems.String(), want)
	}
}

// onWrite is a writer that calls itself.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	var problems strings.Builder
	if code := run(ctx, nil, onWrite(interrupt), &problems); code != exitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, exitInterrupted, problems.String())
	}
}
