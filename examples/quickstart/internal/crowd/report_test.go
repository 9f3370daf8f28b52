package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var names = []string{"by hand", "singleflight", "cacheguard"}

// threeRuns are results as they come.
func threeRuns() []measured {
	return []measured{
		{calls: calls{waits: []time.Duration{400 * time.Microsecond, 1622 * ms}}, queries: 2400, expiries: 3, commands: 89253},
		{calls: calls{waits: []time.Duration{120 * ms}}, queries: 56, expiries: 7, commands: 4},
		{calls: calls{waits: []time.Duration{90 * ms}}, queries: 7, expiries: 7, commands: 1},
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := report(settings{query: 80 * ms}, names, threeRuns(), &out); err != nil {
		t.Error(err)
	}
	want := `
                             by hand   singleflight   cacheguard
  ──────────────────────────────────────────────────────────────
  database queries             2,400             56            7
  expiries of the entry            3              7            7
  queries per expiry           800.0            8.0          1.0
  calls answered                   2              1            1
  latency of a call, p50      0.4 ms         120 ms        90 ms
  latency of a call, p99    1,622 ms         120 ms        90 ms
  latency of a call, max    1,622 ms         120 ms        90 ms
  Redis commands              89,253              4            1
  Redis commands per call   44626.50           4.00         1.00

Each time the entry expired, the database got 800 queries (by hand), 8.0 queries (singleflight) and 1 query (cacheguard).
The slowest call took 1,622 ms, 120 ms and 90 ms.
`
	if out.String() != want {
		t.Errorf("report is:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestReportOfAGuardThatQueriedTwice(t *testing.T) {
	t.Parallel()
	results := threeRuns()
	results[2].queries++
	err := report(settings{query: 80 * ms}, names, results, new(strings.Builder))
	if err == nil || !strings.Contains(err.Error(), "NOT AS PROMISED: 8 queries for 7 expiries") {
		t.Errorf("the error is %v", err)
	}
}

func TestReportOfABusyMachineIsNoFailure(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	results := threeRuns()
	results[2].queries++
	results[2].blind = 80 * ms
	err := report(settings{query: 80 * ms}, names, results, &out)
	if want := "\nTHE MACHINE IS TOO BUSY TO TELL, run it again: 8 queries for 7 expiries"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v, and no %q in\n%s", err, want, out.String())
	}
}

func TestReportTellsOfFailedCalls(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	results := threeRuns()
	results[0].failed, results[0].err = 5, errors.New("too many clients")
	if err := report(settings{query: 80 * ms}, names, results, &out); err != nil {
		t.Errorf("the guard did well: %v", err)
	}
	for _, want := range []string{"calls that failed", "5 calls failed with by hand; the first said: too many clients"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the report:\n%s", want, out.String())
		}
	}
}

func TestQueriesAreCountedInWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		queries(1):     "1 query",
		queries(1.5):   "1.5 queries",
		queries(799.6): "800 queries",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

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
		{"held up, and some may have been missed", measured{queries: 8, expiries: 7, blind: 80 * ms}, ""},
		{"nothing happened", measured{}, "did not expire"},
		{"a call failed", measured{queries: 7, expiries: 7, calls: calls{failed: 1, err: errors.New("why")}}, "why"},
	} {
		got := c.m.broken(80 * ms)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
		}
	}
}
