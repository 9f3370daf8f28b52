package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/report"
	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) {
	distance.Main()
	redistest.Main(m, &shared)
}

// cancelling is a progress that somebody interrupts at its first line.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestInterruptedRunWritesWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	args := []string{"-smoke", "-scenarios", "^(lone|lock, uncontended)", "-rivals", "hand", "-out", dir}
	if err := compare(ctx, args, io.Discard, cancelling{cancel}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatal(err)
	}
	r, err := report.Read(filepath.Join(dir, "compare.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !r.About.Partial || len(r.Scenarios) != 2 || len(r.Scenarios[0].Cases) != 1 || len(r.Scenarios[1].Cases) != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestGivenRedisIsLeftAsItWas(t *testing.T) {
	rdb := shared.Client(t)
	if err := rdb.Set(t.Context(), "mine", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out bytes.Buffer
	const most = "hand|cache|sturdyc|otter|^red" // a goroutine of rueidis now and then outlives its Close
	if err := compare(t.Context(), []string{"-smoke", "-scenarios", "^lone|^lock, uncon", "-rivals", most}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cacheguard", "by hand", "rockscache", "otter", "mutex", "redislock", "redsync"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("nothing of %s in\n%s", name, out.String())
		}
	}
	if left, err := rdb.Keys(t.Context(), rivals.Prefix+"*").Result(); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if v, err := rdb.Get(t.Context(), "mine").Result(); v != "kept" {
		t.Error(v, err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-duration", "0"}, {"-duration", "1m"}, {"-scenarios", "("}, {"-rivals", "["}, {"more"},
		{"-rtt", "far"}, {"-rtt", "0,-1ms"}, {"-rtt", "1h"}, {"-rtt", "1ms", "-scale"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q are taken", args)
		}
	}
}

func TestEachRoundTripIsACaseOfItsOwn(t *testing.T) {
	const far = 2 * time.Millisecond
	dir := t.TempDir()
	args := []string{"-smoke", "-scenarios", "^lone: ", "-rivals", "hand", "-rtt", far.String(), "-out", dir}
	if err := compare(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(filepath.Join(dir, "compare.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Scenarios[0].Cases[0]
	if c.RoundTrip != far || !strings.Contains(c.Title(), far.String()) {
		t.Errorf("%+v", c)
	}
	for _, row := range c.Rows {
		if took, _ := row.Of("p50"); row.Kind == string(rivals.Shared) && took.Least < float64(far.Microseconds()) {
			t.Errorf("%s read in %v µs what is %v away", row.Name, took.Least, far)
		}
	}
	for _, args := range []struct {
		flags []string
		want  []time.Duration
	}{
		{nil, []time.Duration{0, 300 * time.Microsecond, time.Millisecond}},
		{[]string{"-rtt", "0,3ms"}, []time.Duration{0, 3 * time.Millisecond}},
		{[]string{"-rtt", "3ms,0", "-smoke"}, []time.Duration{3 * time.Millisecond}},
	} {
		o, err := parse(args.flags, io.Discard)
		if got := o.roundTrips(scenario.Case{Smoke: true}); err != nil || !slices.Equal(got, args.want) {
			t.Errorf("%q: %v, %v", args.flags, got, err)
		}
	}
}

func TestAScenarioThatIsNotThereIsAnError(t *testing.T) {
	if err := compare(t.Context(), []string{"-scenarios", "nosuch"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-list") {
		t.Fatal(err)
	}
}

func TestMissingRedisIsNamed(t *testing.T) {
	t.Setenv("REDIS_URL", "nonsense")
	if err := compare(t.Context(), []string{"-smoke"}, io.Discard, io.Discard); err == nil || errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "REDIS_URL") {
		t.Fatal(err)
	}
}
