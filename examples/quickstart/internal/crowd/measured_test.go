package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestQueriesPerExpiry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queries, expiries int64
		want              float64
	}{{0, 0, 0}, {5, 0, 0}, {7, 7, 1}, {2400, 3, 800}, {3, 2, 1.5}} {
		if got := (measured{queries: c.queries, expiries: c.expiries}).perExpiry(); got != c.want {
			t.Errorf("%d queries, %d expiries: %v each, want %v", c.queries, c.expiries, got, c.want)
		}
	}
}

func TestCommandsPerCallCountFailedCallsToo(t *testing.T) {
	t.Parallel()
	if got := (measured{commands: 9}).perCall(); got != 0 {
		t.Errorf("without calls: %v, want 0", got)
	}
	m := measured{calls: calls{waits: make([]time.Duration, 3), failed: 1}, commands: 6}
	if got := m.perCall(); got != 1.5 {
		t.Errorf("%v, want 1.5", got)
	}
}

func TestOnlyOneQueryPerExpiryAndNoFailureIsAsPromised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		m    measured
		want string // a part of it; empty: all is well
	}{
		{"as promised", measured{queries: 7, expiries: 7}, ""},
		{"held up, but nothing was missed", measured{queries: 7, expiries: 7, blind: time.Second}, ""},
		{"a query too many", measured{queries: 1001, expiries: 1000}, "1001 queries for 1000 expiries"},
		{"a query too few", measured{queries: 6, expiries: 7}, "6 queries for 7 expiries"},
		{"held up", measured{queries: 8, expiries: 7, blind: 80 * ms}, "held up for 80ms"},
		{"nothing happened", measured{}, "did not expire"},
		{"a call failed", measured{queries: 7, expiries: 7, calls: calls{failed: 1, err: errors.New("why")}}, "why"},
	} {
		got := c.m.broken(80 * ms)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
		}
	}
}
