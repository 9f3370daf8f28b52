package report

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// plot is a chart of some cases of a scenario, one for each round trip that they were run at.
type plot struct {
	file, scenario, title string
	cases                 []string // each is a panel for each metric
	panels                []string // their titles
	metrics               []string
	kinds                 []string // of which rows; nil: all
}

var memory = []string{"memory before Redis", "memory"}

// plots are what the results show at a glance.
var plots = []plot{
	{
		file: "stampede", scenario: "stampede", title: "Stampede: 8 instances × 128 callers ask at once for one missing key, its load takes 50 ms",
		cases: []string{"8 × 128 callers, rebuild 50ms"}, metrics: []string{"loads", "answer p99"},
		panels: []string{"Loads by stampede", "Answered after the load"},
	},
	{
		file: "hits", scenario: "hits", title: "Hits from Redis: 64 callers of one instance, 1 KiB",
		cases:  []string{"1 key, 64 callers, 1 KiB", "10,000 keys, 64 callers, 1 KiB"},
		panels: []string{"One key", "10,000 keys"}, metrics: []string{"gets"}, kinds: []string{"Redis", "Redis, one socket"},
	},
	{
		file: "hits-memory", scenario: "hits", title: "Hits from memory: 64 callers of one instance, 1 KiB",
		cases:  []string{"1 key, 64 callers, 1 KiB", "10,000 keys, 64 callers, 1 KiB"},
		panels: []string{"One key", "10,000 keys"}, metrics: []string{"gets"}, kinds: memory,
	},
	{
		file: "open-loop", scenario: "open loop", title: "Hits as they come (open loop): 10,000 keys, 1 KiB, beside plain GETs in between",
		cases:  []string{"10,000 keys, 500 a second", "10,000 keys, 2,000 a second", "10,000 keys, 5,000 a second", "10,000 keys, 10,000 a second"},
		panels: []string{"500 a second", "2,000 a second", "5,000 a second", "10,000 a second"}, metrics: []string{"p90 beside GET"},
	},
	{
		file: "cold-start", scenario: "cold start", title: "Cold start: 4 instances ask at once for 10,000 missing keys",
		cases: []string{"10,000 keys"}, panels: []string{"All answered", "Loads by key"}, metrics: []string{"all answered", "loads by key"},
		kinds: []string{"Redis", "memory before Redis"},
	},
	{
		file: "locks", scenario: "lock, contended", title: "A lock that contenders hold for 3 ms each: from asking for it to having it",
		cases: []string{
			"2 contenders, held 3 ms, paused 2 ms", "16 contenders, held 3 ms, paused 2 ms", "64 contenders, held 3 ms, paused 2 ms",
		},
		panels: []string{"2 contenders", "16 contenders", "64 contenders"}, metrics: []string{"wait p99"},
	},
	{
		file: "read-shares", scenario: "read-write lock", title: "A lock that 32 callers on 4 instances hold for 2 ms, some of them to read",
		cases:  []string{"50 % read", "95 % read", "99 % read"},
		panels: []string{"50 % read", "95 % read", "99 % read"}, metrics: []string{"locks"},
	},
	{
		file: "flashsale", scenario: "flash sale", title: "Flash sale: 3 instances sell 500 units to 100 buyers at a time, under one lock",
		cases: []string{"500 units"}, panels: []string{"Orders", "Answered"}, metrics: []string{"orders", "p99"},
	},
}

// writePlots draws what the report has of what there is a plot of.
func (r *Report) writePlots(dir string) (err error) {
	for _, p := range plots {
		for _, trip := range r.roundTrips(p.scenario) {
			if c := r.chart(p, trip); c != nil {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, p.name(trip)), c.draw(), 0o644))
			}
		}
	}
	return err
}

// name returns the name of the file. It does not mention Redis on the loopback interface.
func (p plot) name(trip time.Duration) string {
	if trip == 0 {
		return p.file + ".svg"
	}
	return fmt.Sprintf("%s-%v.svg", p.file, trip)
}

// chart is nil if a case is missing.
func (r *Report) chart(p plot, trip time.Duration) *chart {
	c := &chart{title: p.title}
	if trip > 0 {
		c.title += fmt.Sprintf(", Redis %v away", trip)
	}
	var rows []*Row
	for i, name := range p.cases {
		of := r.find(p.scenario, name, trip)
		if of == nil {
			return nil
		}
		if i == 0 {
			rows = p.rows(of)
		}
		for j, metric := range p.metrics {
			c.panels = append(c.panels, panel{title: p.panels[i*len(p.metrics)+j], metric: r.metric(p.scenario, metric), of: of})
		}
	}
	c.groups = grouped(rows)
	return c
}

func (p plot) rows(c *Case) (rows []*Row) {
	for _, row := range c.Rows {
		if p.kinds == nil || slices.Contains(p.kinds, row.Kind) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (r *Report) scenario(name string) *Scenario {
	for _, s := range r.Scenarios {
		if s.Name == name {
			return s
		}
	}
	return new(Scenario)
}

func (r *Report) roundTrips(name string) (trips []time.Duration) {
	for _, c := range r.scenario(name).Cases {
		if !slices.Contains(trips, c.RoundTrip) {
			trips = append(trips, c.RoundTrip)
		}
	}
	return trips
}

func (r *Report) find(name, of string, trip time.Duration) *Case {
	for _, c := range r.scenario(name).Cases {
		if c.Name == of && c.RoundTrip == trip {
			return c
		}
	}
	return nil
}

func (r *Report) metric(name, of string) scenario.Metric {
	for _, m := range r.scenario(name).Metrics {
		if strings.EqualFold(m.Name, of) {
			return m
		}
	}
	return scenario.Metric{Name: of}
}

// picture is an SVG that is being drawn. It brings its own ground, so that it can be read on any page.
type picture struct {
	strings.Builder
	width, height float64
}

// The colours: ours stands out, and everybody can tell it from grey. A reader whose screen is dark gets the dark ones.
const style = `<style>
.ground{fill:#fafafa}.ink{fill:#222}.soft{fill:#667}.grid{stroke:#ddd}.ours{fill:#0072b2}.other{fill:#b4bac2}
text{font-family:Arial,Helvetica,'Liberation Sans',sans-serif;font-size:12px}
.first{stroke:#0072b2;fill:#0072b2}.second{stroke:#d55e00;fill:#d55e00}.third{stroke:#8a929b;fill:#8a929b}.line{fill:none;stroke-width:1.4}
.title{font-size:15px;font-weight:bold}.head{font-weight:bold}.small{font-size:11px}
@media (prefers-color-scheme:dark){
.ground{fill:#161b22}.ink{fill:#e6edf3}.soft{fill:#9aa4b0}.grid{stroke:#343b45}.ours{fill:#56b4e9}.other{fill:#687280}
.first{stroke:#56b4e9;fill:#56b4e9}.second{stroke:#f0883e;fill:#f0883e}.line{fill:none}}
</style>
`

type anchor string

const (
	left   anchor = "start"
	middle anchor = "middle"
	right  anchor = "end"
)

func (p *picture) text(x, y float64, class string, at anchor, s string) {
	fmt.Fprintf(&p.Builder, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, at, html.EscapeString(s))
}

func (p *picture) bar(x, y, width, height float64, class string) {
	fmt.Fprintf(&p.Builder, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`+"\n", x, y, width, height, class)
}

func (p *picture) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.Builder, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>`+"\n", x1, y1, x2, y2)
}

// svg is the whole file. Its title is what is read aloud.
func (p *picture) svg(title string) []byte {
	var whole strings.Builder
	fmt.Fprintf(&whole, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n",
		p.width, p.height, p.width, p.height)
	fmt.Fprintf(&whole, "<title>%s</title>\n%s", html.EscapeString(title), style)
	fmt.Fprintf(&whole, `<rect width="%.0f" height="%.0f" rx="6" class="ground"/>`+"\n", p.width, p.height)
	whole.WriteString(p.String())
	whole.WriteString("</svg>\n")
	return []byte(whole.String())
}
