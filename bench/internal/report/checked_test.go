package report

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/bench/internal/scale"
	"github.com/cacheguard/go/bench/internal/scenario"
)

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

2 of 3 predictions are within 20 %; those that are not are bold.
`
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
}
