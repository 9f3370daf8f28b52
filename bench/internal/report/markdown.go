package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// Markdown writes a table for each case: medians of the rounds, with the least and the most where they differ.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	for _, s := range r.Scenarios {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Name, s.About)
		for _, c := range s.Cases {
			fmt.Fprintf(&b, "\n### %s: %s\n\n", s.Name, c.Title())
			c.table(&b, s.Metrics)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) head(b *strings.Builder) {
	a := r.About
	fmt.Fprintf(b, "# Side by side\n\nMade by `%s` at commit %s on %s, in %v.\n",
		a.Command, a.Commit, a.Began.UTC().Format("2006-01-02 15:04 MST"), a.Took.Round(time.Second))
	fmt.Fprintf(b, "%s; %s; Redis %s. Clients and server share the processors.\n", a.Machine, a.Go, a.Redis)
	if a.Partial {
		fmt.Fprint(b, "\n**The run was interrupted or something failed.**\n")
	}
	fmt.Fprintf(b, "\nMedians of at most %d rounds of %v in which the rivals take turns, and (least–most). \"beside best\": how many times "+
		"as good as the best rival whose hits come from the same place, by the column that is marked with it. Where a round trip is named, a proxy before Redis delays each direction by half of it; without, "+
		"there is the loopback interface alone.\n", a.Rounds, a.Each)
}

func (c *Case) table(b *strings.Builder, metrics []scenario.Metric) {
	main := mainMetric(metrics)
	kinds := c.kinds()
	b.WriteString("| |")
	rule := "|---|"
	if kinds {
		b.WriteString(" hits from |")
		rule += "---|"
	}
	for _, m := range metrics {
		fmt.Fprintf(b, " %s |", title(m))
		rule += "---:|"
		if m.Name == main.Name {
			b.WriteString(" beside best |")
			rule += "---:|"
		}
	}
	fmt.Fprintf(b, "\n%s\n", rule)
	for _, row := range c.Rows {
		name := row.Name
		if row.Ours {
			name = "**" + name + "**"
		}
		fmt.Fprintf(b, "| %s |", name)
		if kinds {
			fmt.Fprintf(b, " %s |", row.Kind)
		}
		for _, m := range metrics {
			fmt.Fprintf(b, " %s |", cell(row, m))
			if m.Name == main.Name {
				fmt.Fprintf(b, " %s |", c.beside(row, m))
			}
		}
		b.WriteString("\n")
	}
	for _, row := range c.Rows {
		if row.Error != "" {
			fmt.Fprintf(b, "\n%s failed: `%s`\n", row.Name, strings.ReplaceAll(row.Error, "\n", "; "))
		}
	}
}

func (c *Case) kinds() bool {
	for _, row := range c.Rows {
		if row.Kind != "" {
			return true
		}
	}
	return false
}

// mainMetric is the one that rivals are compared by.
func mainMetric(metrics []scenario.Metric) scenario.Metric {
	for _, m := range metrics {
		if m.Main {
			return m
		}
	}
	return scenario.Metric{}
}

func title(m scenario.Metric) string {
	if m.Unit == "" || m.Unit[0] == '/' {
		return m.Name + m.Unit
	}
	return m.Name + ", " + m.Unit
}

func cell(row *Row, m scenario.Metric) string {
	s, ok := row.Of(m.Name)
	switch {
	case !ok && row.Error != "":
		return "failed"
	case !ok:
		return ""
	case Number(s.Least) == Number(s.Most):
		return Number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", Number(s.Median), Number(s.Least), Number(s.Most))
}

func (c *Case) beside(row *Row, m scenario.Metric) string {
	ratio, ok := c.Ratio(row, m)
	if !ok {
		return ""
	}
	return Number(ratio) + "×"
}

// Number has three digits, or all of a whole number's up to five.
func Number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e6:
		return fmt.Sprintf("%.3g M", x/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.0f k", x/1e3)
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return trim(fmt.Sprintf("%.1f", x))
	case a >= 0.01:
		return trim(fmt.Sprintf("%.2f", x))
	}
	return fmt.Sprintf("%.2g", x)
}

func trim(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }
