package table

import (
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestATableIsAligned(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Write(&out, [][]string{{"", "sold", "left"}, {"mutex", "2,000", "0"}, {"naïve", "1", "1,999"}})
	want := `           sold    left
  ─────────────────────
  mutex   2,000       0
  naïve       1   1,999
`
	if out.String() != want {
		t.Errorf("table is:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestNumbersAreWrittenForReaders(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Count(0):                         "0",
		Count(999):                       "999",
		Count(-999):                      "-999",
		Count(1000):                      "1,000",
		Count(int64(1234567)):            "1,234,567",
		Count(-1234567):                  "-1,234,567",
		Millis(0):                        "0.0 ms",
		Millis(1234 * time.Microsecond):  "1.2 ms",
		Millis(10499 * time.Microsecond): "10 ms",
		Millis(2 * time.Second):          "2,000 ms",
		Hundredths(0.995):                "0.99",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAQuantileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := 100; i > 0; i-- {
		hundred = append(hundred, time.Duration(i)*ms)
	}
	for _, c := range []struct {
		waits []time.Duration
		share float64
		want  time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{3 * ms}, 0.01, 3 * ms},
		{[]time.Duration{3 * ms}, 1, 3 * ms},
		{[]time.Duration{2 * ms, 1 * ms}, 0.5, 1 * ms},
		{[]time.Duration{2 * ms, 1 * ms}, 0.51, 2 * ms},
		{hundred, 0.07, 7 * ms},
		{hundred, 0.5, 50 * ms},
		{hundred, 0.99, 99 * ms},
		{hundred, 1, 100 * ms},
		{hundred[:10], 0.99, 100 * ms},
	} {
		if got := Quantile(c.waits, c.share); got != c.want {
			t.Errorf("%v of %d waits: %v, want %v", c.share, len(c.waits), got, c.want)
		}
	}
}
