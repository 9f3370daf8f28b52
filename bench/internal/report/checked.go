package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cacheguard/go/bench/internal/scale"
	"github.com/cacheguard/go/bench/internal/scenario"
)

// near is how far a prediction may be off.
const near = 0.2

// Checked writes, for the scenarios that have predictions, what was measured beside what was predicted: medians of the
// rounds, and how far off the prediction is.
func (r *Report) Checked(w io.Writer) error {
	var b strings.Builder
	within, all := 0, 0
	for _, s := range r.Scenarios {
		if len(s.Cases) == 0 || s.Cases[0].row(scale.IsPredicted) == nil {
			continue
		}
		fmt.Fprintf(&b, "\n**%s**, measured / predicted\n\n| |", s.Name)
		rule := "|---|"
		for _, m := range s.Metrics {
			fmt.Fprintf(&b, " %s |", title(m))
			rule += "---:|"
		}
		fmt.Fprintf(&b, "\n%s\n", rule)
		for _, c := range s.Cases {
			fmt.Fprintf(&b, "| %s |", c.Name)
			for _, m := range s.Metrics {
				text, off, ok := c.pair(m)
				if ok {
					all++
				}
				if ok && math.Abs(off) <= near {
					within++
				}
				fmt.Fprintf(&b, " %s |", text)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "\n%d of %d predictions are within %.0f %%; the others are bold.\n", within, all, 100*near)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Case) row(name string) *Row {
	for _, row := range c.Rows {
		if row.Name == name {
			return row
		}
	}
	return nil
}

// pair is a figure beside its prediction. Not ok: there are not both.
func (c *Case) pair(m scenario.Metric) (text string, off float64, ok bool) {
	measured, predicted := c.row(scale.IsMeasured), c.row(scale.IsPredicted)
	if measured == nil || predicted == nil {
		return "", 0, false
	}
	is, isOK := measured.Of(m.Name)
	was, wasOK := predicted.Of(m.Name)
	switch {
	case !isOK:
		return "", 0, false
	case !wasOK:
		return Number(is.Median), 0, false
	case is.Median != was.Median:
		off = was.Median/is.Median - 1
	}
	text = fmt.Sprintf("%s / %s", Number(is.Median), Number(was.Median))
	if math.Abs(off) > near {
		text = fmt.Sprintf("**%s** (%+.0f %%)", text, 100*off)
	}
	return text, off, true
}
