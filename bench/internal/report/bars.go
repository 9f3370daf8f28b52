package report

import (
	"math"
	"slices"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
)

// chart has a bar for each row in each of its panels, side by side. Each panel has a linear axis of its own.
type chart struct {
	title  string
	groups []group
	panels []panel
}

// group is rows that promise the same.
type group struct {
	name string // empty: there is only one
	rows []*Row
}

// panel is a metric of a case.
type panel struct {
	title  string
	metric scenario.Metric
	of     *Case
}

// Sizes in pixels. README pages are about that many wide.
const (
	chartWidth, margin          = 860.0, 16.0
	rowHigh, barHigh, groupHigh = 22.0, 14.0, 26.0
	top, bottom                 = 84.0, 30.0
	letter                      = 6.6  // a name's, on average, in the widest of the fonts
	valueWide                   = 52.0 // room for the figure behind the longest bar
)

func (c *chart) draw() []byte {
	high, longest := top+bottom, 0
	for _, g := range c.groups {
		if g.name != "" {
			high += groupHigh
			longest = max(longest, len(g.name)-3) // it begins further left
		}
		for _, row := range g.rows {
			high += rowHigh
			longest = max(longest, len(row.Name))
		}
	}
	p := &picture{width: chartWidth, height: high}
	p.text(margin, 28, "title ink", left, c.title)
	names := margin + letter*float64(longest) + 2*margin
	wide := (chartWidth - names) / float64(len(c.panels))
	for i, panel := range c.panels {
		panel.axis(p, names+wide*float64(i), wide-valueWide, c.most(panel))
	}
	y := top
	for _, g := range c.groups {
		if g.name != "" {
			p.text(margin, y+groupHigh-8, "small soft", left, g.name)
			y += groupHigh
		}
		for _, row := range g.rows {
			c.row(p, row, names, wide, y)
			y += rowHigh
		}
	}
	return p.svg(c.title)
}

func (c *chart) row(p *picture, row *Row, names, wide, y float64) {
	name, bar := "ink", "other"
	if row.Ours {
		name, bar = "head ink", "ours"
	}
	p.text(names-margin/2, y+rowHigh-7, name, right, row.Name)
	for i, panel := range c.panels {
		x := names + wide*float64(i)
		figure, text, ok := panel.figure(row)
		length := 0.0
		if ok {
			length = max(1, figure/c.most(panel)*(wide-valueWide))
			p.bar(x, y+(rowHigh-barHigh)/2, length, barHigh, bar)
		}
		p.text(x+length+5, y+rowHigh-7, "small "+name, left, text)
	}
}

// figure is the row of the panel's case that has the name, whichever case the row is of.
func (n panel) figure(row *Row) (x float64, text string, ok bool) {
	for _, r := range n.of.Rows {
		if r.Name != row.Name {
			continue
		}
		if s, ok := r.Of(n.metric.Name); ok {
			return s.Median, Number(s.Median), true
		}
		if r.Error != "" {
			return 0, "failed", false
		}
	}
	return 0, "–", false
}

// most is the largest figure of a panel.
func (c *chart) most(n panel) float64 {
	most := 0.0
	for _, g := range c.groups {
		for _, row := range g.rows {
			if x, _, ok := n.figure(row); ok {
				most = max(most, x)
			}
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// axis draws a panel's heading, which says where better is, and its ground.
func (n panel) axis(p *picture, x, wide, most float64) {
	p.text(x, 54, "head ink", left, n.title)
	unit := title(n.metric)
	switch n.metric.Better {
	case scenario.Lower:
		unit = "← better · " + unit
	case scenario.Higher:
		unit += " · better →"
	}
	p.text(x, 71, "small soft", left, unit)
	step := nice(most / 4)
	for mark := 0.0; mark <= most*1.0001; mark += step {
		at := x + mark/most*wide
		p.line(at, top-4, at, p.height-bottom+4)
		p.text(at, p.height-bottom+18, "small soft", middle, Number(mark))
	}
}

// nice is the least of 1, 2, 5, 10, 20 and so on that is not less than x.
func nice(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= x {
			return n * unit
		}
	}
	return 10 * unit
}

// grouped puts rows that promise the same together, ours first in each group.
func grouped(rows []*Row) (groups []group) {
	for _, row := range rows {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == row.Promise })
		if i < 0 {
			i, groups = len(groups), append(groups, group{name: row.Promise})
		}
		groups[i].rows = append(groups[i].rows, row)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return rank(a.name) - rank(b.name) })
	for _, g := range groups {
		slices.SortStableFunc(g.rows, func(a, b *Row) int { return others(a) - others(b) })
	}
	return groups
}

func rank(promise string) int {
	return slices.Index([]string{rivals.OnePerFleet, rivals.OnePerProcess, rivals.NoPromise}, promise)
}

func others(r *Row) int {
	if r.Ours {
		return 0
	}
	return 1
}
