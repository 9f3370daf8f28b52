package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// twoRuns are results as they come.
func twoRuns() (byHand, guarded measured) {
	byHand = measured{
		calls:   calls{waits: []time.Duration{400 * time.Microsecond, 1622 * ms}},
		queries: 2400, expiries: 3, commands: 89253,
	}
	guarded = measured{calls: calls{waits: []time.Duration{90 * ms}}, queries: 7, expiries: 7, commands: 1}
	return byHand, guarded
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	byHand, guarded := twoRuns()
	if code := report(settings{query: 80 * ms}, byHand, guarded, &out); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	want := `
                             by hand   cacheguard
  ───────────────────────────────────────────────
  database queries             2,400            7
  expiries of the entry            3            7
  queries per expiry           800.0          1.0
  calls answered                   2            1
  latency of a call, p50      0.4 ms        90 ms
  latency of a call, p99    1,622 ms        90 ms
  latency of a call, max    1,622 ms        90 ms
  Redis commands              89,253            1
  Redis commands per call   44626.50         1.00

Each time the entry expired, the database got 800 queries by hand and 1 query with cacheguard;
the slowest call took 1,622 ms by hand and 90 ms with cacheguard.
`
	if out.String() != want {
		t.Errorf("report is:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestReportOfAGuardThatQueriedTwice(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	byHand, guarded := twoRuns()
	guarded.queries++
	if code := report(settings{query: 80 * ms}, byHand, guarded, &out); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(out.String(), "NOT AS PROMISED: 8 queries for 7 expiries") {
		t.Errorf("the report does not say so:\n%s", out.String())
	}
}

func TestReportTellsOfFailedCalls(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	byHand, guarded := twoRuns()
	byHand.failed, byHand.err = 5, errors.New("too many clients")
	if code := report(settings{query: 80 * ms}, byHand, guarded, &out); code != exitOK {
		t.Errorf("exit code %d, want %d: the guard did well", code, exitOK)
	}
	for _, want := range []string{"calls that failed", "5 calls failed by hand; the first said: too many clients"} {
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
