// Command day computes a day of a fleet of 10,000 instances, and draws what its database and its Redis see (bench/SCALE.md):
//
//	go run ./bench/cmd/day
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cacheguard/go/bench/internal/day"
	"github.com/cacheguard/go/bench/internal/report"
)

func main() {
	prices := flag.String("prices", "bench/results/scale/compare.md", "read what operations cost from this report of compare -scale")
	dir := flag.String("out", "bench/results/scale", "write the plots into this folder")
	flag.Parse()
	if err := run(*prices, *dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		os.Exit(1)
	}
}

func run(prices, dir string, w io.Writer) error {
	costs, err := day.ReadPrices(prices)
	if err != nil {
		return err
	}
	plan := day.BlackFriday()
	ours, theirs := day.Cacheguard(plan, costs), day.ByHand(plan, costs)
	if err := os.WriteFile(filepath.Join(dir, "day.svg"), draw(plan, ours, theirs), 0o644); err != nil {
		return err
	}
	return table(w, plan, ours, theirs)
}

// draw shows the most of each two minutes.
func draw(plan day.Plan, ours, theirs []day.Second) []byte {
	panel := func(title string, log bool, of func(day.Second) float64) report.LinePanel {
		return report.LinePanel{Title: title, Log: log, Lines: []report.Line{
			{Name: "GET, SET, DEL by hand", Look: report.OfRival, Figures: most(theirs, of)}, {Name: "cacheguard", Look: report.OfOurs, Figures: most(ours, of)},
		}}
	}
	loads := panel("The database: loads a second", true, func(s day.Second) float64 { return s.Loads })
	gets := most(ours, func(s day.Second) float64 { return s.Gets })
	loads.Lines = append([]report.Line{{Name: "without a cache", Look: report.OfNothing, Figures: gets}}, loads.Lines...)
	waits := panel("A load waits for a permit of the Limiter, s", false, func(s day.Second) float64 { return s.Waits })
	waits.Lines = waits.Lines[1:]
	lines := report.Lines{
		Title: "A day of 10,000 instances and 18 nodes of Redis, computed: the most of each two minutes", Hours: plan.Seconds / 3600,
		Panels: []report.LinePanel{
			loads, panel("The database: loads at once", true, func(s day.Second) float64 { return s.AtOnce }), waits,
			panel("Redis: requests a second, all nodes", false, func(s day.Second) float64 { return s.Requests }),
			panel("Redis: for how much of its time a node computes, %", false, func(s day.Second) float64 { return 100 * s.Mean }),
			panel("Redis: the same of the busiest node, %", false, func(s day.Second) float64 { return 100 * s.Busiest }),
		},
	}
	for _, m := range plan.Marks {
		lines.Marks = append(lines.Marks, report.LineMark{At: float64(m.At) / 3600, Name: m.Name})
	}
	return lines.SVG()
}

func most(seconds []day.Second, of func(day.Second) float64) (figures []float64) {
	for two := range slices.Chunk(seconds, 120) {
		figures = append(figures, slices.Max(all(two, of)))
	}
	return figures
}

// table is the most of some figures in the ten minutes around each mark, and of the whole day.
func table(w io.Writer, plan day.Plan, ours, theirs []day.Second) error {
	figures := []struct {
		name string
		of   func(day.Second) float64
		by   [][]day.Second
	}{
		{"Gets a second", func(s day.Second) float64 { return s.Gets }, [][]day.Second{ours}},
		{"loads a second", func(s day.Second) float64 { return s.Loads }, [][]day.Second{theirs, ours}},
		{"loads at once", func(s day.Second) float64 { return s.AtOnce }, [][]day.Second{theirs, ours}},
		{"a load waits, s", func(s day.Second) float64 { return s.Waits }, [][]day.Second{ours}},
		{"requests a second", func(s day.Second) float64 { return s.Requests }, [][]day.Second{theirs, ours}},
		{"a node, %", func(s day.Second) float64 { return 100 * s.Mean }, [][]day.Second{theirs, ours}},
		{"the busiest, %", func(s day.Second) float64 { return 100 * s.Busiest }, [][]day.Second{theirs, ours}},
	}
	var b strings.Builder
	b.WriteString("| by hand / cacheguard |")
	for _, f := range figures {
		fmt.Fprintf(&b, " %s |", f.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(figures)) + "\n")
	row := func(name string, from, to int) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, f := range figures {
			var cells []string
			for _, seconds := range f.by {
				cells = append(cells, report.Number(slices.Max(all(seconds[from:to], f.of))))
			}
			fmt.Fprintf(&b, " %s |", strings.Join(cells, " / "))
		}
		b.WriteString("\n")
	}
	for _, m := range plan.Marks {
		row(fmt.Sprintf("%d:00 %s", m.At/3600, m.Name), m.At-300, m.At+300)
	}
	row("the day", 0, len(ours))
	gone := 0.0
	for _, s := range ours {
		gone += s.GaveUp
	}
	fmt.Fprintf(&b, "\n%.0f loads were given up, as nobody waited for them any more.\n", gone)
	_, err := io.WriteString(w, b.String())
	return err
}

func all(seconds []day.Second, of func(day.Second) float64) (figures []float64) {
	for _, s := range seconds {
		figures = append(figures, of(s))
	}
	return figures
}
