package report

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scale"
	"github.com/cacheguard/go/bench/internal/scenario"
)

func figures(name string, all ...float64) (rounds []scenario.Figures) {
	for _, x := range all {
		rounds = append(rounds, scenario.Figures{name: x})
	}
	return rounds
}

func TestSpreadIsTheMedianBetweenLeastAndMost(t *testing.T) {
	t.Parallel()
	row := Row{Rounds: figures("took", 5, 1, 2, 4)}
	if s, ok := row.Of("took"); !ok || s != (Spread{Median: 3, Least: 1, Most: 5}) {
		t.Fatal(s, ok)
	}
	if s, ok := row.Of("other"); ok {
		t.Fatal(s)
	}
}

func TestRatioComparesWithTheBestRivalOfTheSameKind(t *testing.T) {
	t.Parallel()
	c := Case{Rows: []*Row{
		{Name: "ours", Ours: true, Kind: "a", Rounds: figures("x", 2)},
		{Name: "ours too", Ours: true, Kind: "a", Rounds: figures("x", 1)},
		{Name: "rival", Kind: "a", Rounds: figures("x", 8)},
		{Name: "better rival", Kind: "a", Rounds: figures("x", 4)},
		{Name: "another kind", Kind: "b", Rounds: figures("x", 1)},
		{Name: "failed", Kind: "a"},
	}}
	lower := scenario.Metric{Name: "x", Better: scenario.Lower}
	for i, want := range []float64{2, 4, 0.5, 1, 1, 0} {
		if got, ok := c.Ratio(c.Rows[i], lower); got != want || ok != (want != 0) {
			t.Errorf("%s: %v %v, want %v", c.Rows[i].Name, got, ok, want)
		}
	}
	higher := scenario.Metric{Name: "x", Better: scenario.Higher}
	if got, _ := c.Ratio(c.Rows[0], higher); got != 0.25 {
		t.Errorf("where more is better: %v, want 0.25", got)
	}
}

func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 1: "1", 0.0015: "0.0015", 0.25: "0.25", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1234", 12345: "12 k",
		123456: "123 k", 1234567: "1.23 M", 20: "20",
	} {
		if got := Number(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestReportIsWrittenWithItsFailuresAndReadBack(t *testing.T) {
	t.Parallel()
	r := &Report{Scenarios: []*Scenario{{
		Name: "hits", Metrics: []scenario.Metric{{Name: "gets", Unit: "/s", Better: scenario.Higher, Main: true}},
		Cases: []*Case{
			{Name: "1 key, 64 callers, 1 KiB", Rows: []*Row{
				{Name: "ours", Ours: true, Rounds: figures("gets", 3e6, 1e6, 2e6)},
				{Name: "rival", Rounds: figures("gets", 1e6)},
				{Name: "broken", Error: "line 1\nline 2"},
			}},
			{Name: "10,000 keys, 64 callers, 1 KiB", Rows: []*Row{{Name: "ours", Ours: true, Rounds: figures("gets", 5e5)}}},
		},
	}}}
	dir := filepath.Join(t.TempDir(), "new")
	if err := r.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "compare.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| **ours** | 2 M (1 M–3 M) | 2× |", "| rival | 1 M | 1× |", "| broken | failed |  |", "broken failed: `line 1; line 2`",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "hits.svg")); err != nil || !strings.Contains(string(svg), "10,000 keys") {
		t.Error("hits.svg: ", err)
	}
	again, err := Read(filepath.Join(dir, "compare.json"))
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("read back: %v\n%+v", err, again)
	}
}

func TestChartGroupsRowsByWhatTheyPromiseOursFirst(t *testing.T) {
	t.Parallel()
	var names []string
	for _, g := range grouped([]*Row{
		{Name: "by hand", Promise: rivals.NoPromise},
		{Name: "rival", Promise: rivals.OnePerFleet},
		{Name: "of a process", Promise: rivals.OnePerProcess},
		{Name: "ours", Promise: rivals.OnePerFleet, Ours: true},
	}) {
		for _, row := range g.rows {
			names = append(names, row.Name)
		}
	}
	if want := []string{"ours", "rival", "of a process", "by hand"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestChartHasABarForEachFigureAndSaysWhatFailed(t *testing.T) {
	t.Parallel()
	r := &Report{Scenarios: []*Scenario{{
		Name: "stampede", Metrics: []scenario.Metric{{Name: "loads", Better: scenario.Lower}, {Name: "answer p99", Unit: "ms", Better: scenario.Lower}},
		Cases: []*Case{{Name: "8 × 128 callers, rebuild 50ms", RoundTrip: time.Millisecond, Rows: []*Row{
			{Name: "ours", Ours: true, Rounds: []scenario.Figures{{"loads": 0, "answer p99": 3}}},
			{Name: "rival <1>", Rounds: []scenario.Figures{{"loads": 8, "answer p99": 2}}},
			{Name: "broken", Error: "no"},
		}}},
	}}}
	dir := t.TempDir()
	if err := r.writePlots(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "stampede-1ms.svg"))
	if err != nil {
		t.Fatal(err)
	}
	svg := string(text)
	for _, want := range []string{"Redis 1ms away", ">← better · answer p99, ms<", ">rival &lt;1&gt;<", ">failed<", ">8<", ">3<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	if ours, others := strings.Count(svg, `class="ours"`), strings.Count(svg, `class="other"`); ours != 2 || others != 2 {
		t.Errorf("%d and %d bars", ours, others)
	}
	if err := xml.Unmarshal(text, new(struct{})); err != nil {
		t.Error(err)
	}
}

func TestNiceStepsAreRoundNumbers(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{1: 1, 1.1: 2, 3: 5, 6: 10, 256: 500, 0.03: 0.05} {
		if got := nice(x); math.Abs(got-want) > want/1e9 {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
}

func TestPredictionsThatAreFarOffAreBold(t *testing.T) {
	t.Parallel()
	both := func(measured, predicted scenario.Figures) []*Row {
		return []*Row{
			{Name: scale.IsMeasured, Rounds: []scenario.Figures{measured}},
			{Name: scale.IsPredicted, Rounds: []scenario.Figures{predicted}},
		}
	}
	r := Report{Scenarios: []*Scenario{
		{Name: "of rivals", Cases: []*Case{{Rows: []*Row{{Name: "rival"}}}}},
		{
			Name: "scale", Metrics: []scenario.Metric{{Name: "x"}, {Name: "y", Unit: "ms"}},
			Cases: []*Case{
				{Name: "near", Rows: both(scenario.Figures{"x": 100, "y": 5}, scenario.Figures{"x": 119})},
				{Name: "far", Rows: both(scenario.Figures{"x": 100, "y": 0}, scenario.Figures{"x": 50, "y": 0})},
			},
		},
	}}
	var b strings.Builder
	if err := r.Checked(&b); err != nil {
		t.Fatal(err)
	}
	const want = `
**scale**, measured / predicted

| | x | y, ms |
|---|---:|---:|
| near | 100 / 119 | 5 |
| far | **100 / 50** (-50 %) | 0 / 0 |

2 of 3 predictions are within 20 %; the others are bold.
`
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
}
