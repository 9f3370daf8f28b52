package day

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const table = `# Side by side
| | RTT, µs | lone, µs | probe, µs | idle, µs/s | GET, µs | acquire, µs | publish, µs | write, µs |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| **alone** | 18.2 (18.1–18.3) | 97.8 (94–102) | 26.3 | 12 k (11 k–13 k) |  |  |  |  |
| **of few** |  |  |  |  | 6.5 | 16 | 2.5 | 7 |
| **of many** |  |  |  |  | 7.5 | 20 | 3.5 | 8 |

## Another table, of which nothing is read
| **of few** |  |  |  |  | 1 | 1 | 1 | 1 |
`

// read reads prices from a report that says so.
func read(t *testing.T, report string) (Prices, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compare.md")
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadPrices(file)
}

func TestPricesAreReadByRowAndColumnWithTheirThousands(t *testing.T) {
	t.Parallel()
	got, err := read(t, table)
	want := Prices{Lone: 97.8, Probe: 26.3, Idle: 12_000, Few: Crowd{6.5, 16, 2.5, 7}, Many: Crowd{7.5, 20, 3.5, 8}}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestAPriceThatIsMissingOrNoNumberIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ instead, of, named string }{
		{"| failed ", "| 97.8 (94–102) ", `"alone", lone: `},
		{"|  ", "| 16 ", `"of few", acquire: there is none`},
		{"| 0 ", "| 3.5 ", `"of many", publish: 0 is no price`},
		{"| NaN ", "| 2.5 ", `"of few", publish: NaN is no price`},
		{"| **of several** ", "| **of many** ", `"of many", GET: there is none`},
		{"| hold, µs ", "| probe, µs ", `"alone", probe: there is none`},
		{"| trip, µs |", "| RTT, µs |", `"alone", lone: there is none`},
	} {
		if _, err := read(t, strings.Replace(table, c.of, c.instead, 1)); err == nil || !strings.Contains(err.Error(), "compare.md: unit-costs: "+c.named) {
			t.Errorf("%q instead of %q: error %v, want %s", c.instead, c.of, err, c.named)
		}
	}
	short := table[:strings.Index(table, "| 12 k")] // the file ends in the middle of a row
	if _, err := read(t, short); err == nil || !strings.Contains(err.Error(), `"alone", idle`) {
		t.Errorf("a short row: %v", err)
	}
	if _, err := ReadPrices(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestPricesGrowWithTheLogarithmOfTheFleet(t *testing.T) {
	t.Parallel()
	prices := Prices{Lone: 100, Probe: 30, Idle: 1000, Few: Crowd{6, 16, 2, 8}, Many: Crowd{7, 20, 3, 6}} // a write costs less in a crowd: it was measured so
	for instances, want := range map[int]each{
		10:     {get: 6, miss: 47, permit: 10, script: 10, wait: 16 + 2 + 8},
		100:    {get: 6, miss: 47, permit: 10, script: 10, wait: 16 + 2 + 8},
		1000:   {get: 7, miss: 47, permit: 13, script: 13, wait: 20 + 3 + 8},
		10_000: {get: 8, miss: 47, permit: 16, script: 16, wait: 24 + 4 + 8},
	} {
		got := prices.in(Plan{Instances: instances, Nodes: 1})
		want.idle = 1000 + float64(instances)/pause*30
		for i, pair := range [][2]float64{
			{got.get, want.get}, {got.miss, want.miss}, {got.permit, want.permit}, {got.script, want.script}, {got.wait, want.wait}, {got.idle, want.idle},
		} {
			if math.Abs(pair[0]*1e6-pair[1]) > 1e-6 {
				t.Errorf("%d instances, price %d: %v µs, want %v", instances, i, pair[0]*1e6, pair[1])
			}
		}
	}
}
