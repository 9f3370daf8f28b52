package report

import (
	"fmt"
	"math"
	"strings"
)

// Lines is a picture of what happens in the course of a time: a panel for each group of figures, one below the other.
type Lines struct {
	Title  string
	Hours  int
	Panels []LinePanel
	Marks  []LineMark // vertical lines
}

// LinePanel has the figures of one unit.
type LinePanel struct {
	Title string
	Log   bool
	Lines []Line
}

// Line is the figures of one row, at equal distances.
type Line struct {
	Name    string
	Look    Look
	Figures []float64
}

// Look is the colour of a line.
type Look string

// The looks.
const (
	OfOurs    Look = "first"
	OfRival   Look = "second"
	OfNothing Look = "third"
)

// LineMark is a moment with a name.
type LineMark struct {
	At   float64 // hours
	Name string
}

const (
	panelHigh, panelGap = 120.0, 46.0
	lineLeft            = 64.0
	lineTop             = 92.0
)

// SVG draws it.
func (l *Lines) SVG() []byte {
	p := &picture{width: chartWidth, height: lineTop + float64(len(l.Panels))*(panelHigh+panelGap)}
	p.text(margin, 28, "title ink", left, l.Title)
	wide := chartWidth - lineLeft - 2*margin
	for i, mark := range l.Marks {
		x := lineLeft + mark.At/float64(l.Hours)*wide
		p.line(x, lineTop-24, x, p.height-panelGap)
		p.text(x-4, lineTop-30-14*float64(i%2), "small soft", middle, mark.Name)
	}
	for i, panel := range l.Panels {
		y := lineTop + float64(i)*(panelHigh+panelGap)
		panel.draw(p, y, wide)
		for hour := 0; hour <= l.Hours; hour += max(1, l.Hours/8) {
			p.text(lineLeft+float64(hour)/float64(l.Hours)*wide, y+panelHigh+14, "small soft", middle, fmt.Sprintf("%d:00", hour))
		}
	}
	return p.svg(l.Title)
}

func (n LinePanel) draw(p *picture, y, wide float64) {
	least, most := n.bounds()
	at := func(figure float64) float64 {
		if n.Log {
			return y + panelHigh*(1-math.Log(max(figure, least)/least)/math.Log(most/least))
		}
		return y + panelHigh*(1-figure/most)
	}
	p.text(lineLeft, y-6, "head ink", left, n.Title)
	for _, mark := range n.marks(least, most) {
		p.line(lineLeft, at(mark), lineLeft+wide, at(mark))
		p.text(lineLeft-6, at(mark)+4, "small soft", right, Number(mark))
	}
	x := lineLeft + wide
	for _, line := range n.Lines {
		var points strings.Builder
		for j, figure := range line.Figures {
			fmt.Fprintf(&points, "%.1f,%.1f ", lineLeft+float64(j)/float64(len(line.Figures))*wide, at(figure))
		}
		fmt.Fprintf(&p.Builder, `<polyline points="%s" class="line %s"/>`+"\n", strings.TrimSpace(points.String()), line.Look)
		x -= letter*float64(len(line.Name)) + 34
		p.bar(x, y-11, 14, 3, string(line.Look))
		p.text(x+18, y-6, "small ink", left, line.Name)
	}
}

// bounds are the ends of the axis.
func (n LinePanel) bounds() (least, most float64) {
	least, most = math.Inf(1), 0
	for _, line := range n.Lines {
		for _, figure := range line.Figures {
			if most = max(most, figure); figure > 0 {
				least = min(least, figure)
			}
		}
	}
	if most == 0 {
		return 1, 10
	}
	return math.Pow(10, math.Floor(math.Log10(least))), most * 1.05
}

func (n LinePanel) marks(least, most float64) (all []float64) {
	if n.Log {
		for mark := least; mark <= most; mark *= 10 {
			all = append(all, mark)
		}
		return all
	}
	step := nice(most / 4)
	for mark := 0.0; mark <= most; mark += step {
		all = append(all, mark)
	}
	return all
}
