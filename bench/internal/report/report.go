// Package report keeps what compare has measured, and writes it down: as JSON with every round, as Markdown tables of
// medians, and as plots.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// Report is one run of compare.
type Report struct {
	About     About
	Scenarios []*Scenario
}

// About is where and how a report was made.
type About struct {
	Began   time.Time
	Took    time.Duration
	Command string
	Commit  string
	Machine string
	Go      string
	Redis   string
	Rounds  int
	Each    time.Duration // what was timed in each round
	Partial bool          // it was interrupted, or something failed
}

// Scenario is the outcome of a scenario.
type Scenario struct {
	Name    string
	About   string
	Metrics []scenario.Metric
	Cases   []*Case
}

// Case is the outcome of a case.
type Case struct {
	Name      string
	RoundTrip time.Duration // to Redis, more than what the loopback interface takes
	Params    map[string]float64
	Rows      []*Row
}

// Title is the name, with the distance of Redis if there is any.
func (c *Case) Title() string {
	if c.RoundTrip == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s, round trip %v", c.Name, c.RoundTrip)
}

// Row is what one entry did in a case.
type Row struct {
	Name    string
	Ours    bool
	Kind    string `json:",omitempty"`
	Promise string `json:",omitempty"` // of how often it loads
	Rounds  []scenario.Figures
	Error   string `json:",omitempty"` // of the first round that failed
}

// Spread is a figure over the rounds.
type Spread struct{ Median, Least, Most float64 }

// Of is the spread of a figure; not ok if there is none.
func (r *Row) Of(metric string) (s Spread, ok bool) {
	var all []float64
	for _, figures := range r.Rounds {
		if x, ok := figures[metric]; ok && !math.IsNaN(x) {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return Spread{}, false
	}
	slices.Sort(all)
	n := len(all)
	return Spread{Median: (all[(n-1)/2] + all[n/2]) / 2, Least: all[0], Most: all[n-1]}, true
}

// Ratio is how many times as good as the best rival of its kind a row is, by medians: more than 1 is better than the best.
// For rivals, the best of the others counts too, so that one of them stands at 1. Not ok if nothing can be compared.
func (c *Case) Ratio(row *Row, m scenario.Metric) (ratio float64, ok bool) {
	mine, ok := row.Of(m.Name)
	if !ok || m.Better == scenario.Either {
		return 0, false
	}
	best, found := c.bestRival(row.Kind, m)
	if !found {
		return 0, false
	}
	num, den := best, mine.Median
	if m.Better == scenario.Higher {
		num, den = mine.Median, best
	}
	if num == den {
		return 1, true
	}
	return num / den, num != 0 && den != 0
}

func (c *Case) bestRival(kind string, m scenario.Metric) (best float64, found bool) {
	for _, row := range c.Rows {
		s, ok := row.Of(m.Name)
		if !ok || row.Ours || row.Kind != kind {
			continue
		}
		if !found || m.Better == scenario.Lower && s.Median < best || m.Better == scenario.Higher && s.Median > best {
			best, found = s.Median, true
		}
	}
	return best, found
}

// WriteTo writes the report to a directory: compare.json with every round, compare.md and the plots.
func (r *Report) WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	if err := r.Markdown(&tables); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "compare.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "compare.md"), tables.Bytes(), 0o644),
		r.writePlots(dir),
	)
}

// Read reads a compare.json.
func Read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	return r, json.Unmarshal(text, r)
}
