package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
)

// writePlots draws what the report has of what there is a plot of.
func (r *Report) writePlots(dir string) (err error) {
	for _, p := range []struct {
		file string
		draw func() ([]byte, error)
	}{
		{"stampede.svg", r.stampedePlot},
		{"hits.svg", r.hitsPlot},
		{"locks.svg", r.locksPlot},
		{"read-shares.svg", r.readSharesPlot},
	} {
		picture, derr := p.draw()
		if derr == nil && picture != nil {
			derr = os.WriteFile(filepath.Join(dir, p.file), picture, 0o644)
		}
		err = errors.Join(err, derr)
	}
	return err
}

const width = 860 * font.Length(0.75) // README pages are about so many pixels wide

func (r *Report) stampedePlot() ([]byte, error) {
	c := r.find("stampede", "8 × 128 callers, rebuild 50ms")
	if c == nil {
		return nil, nil
	}
	rows := c.names()
	times := newPlot("Answer after the rebuild")
	terr := dots(times, "ms", rows, []series{c.column("answer p50", "p50"), c.column("answer p99", "p99")})
	asked := newPlot("Asked of the database and of Redis")
	aerr := dots(asked, "loads and requests by stampede", rows, []series{c.column("loads", "loads"), c.column("requests", "requests")})
	if err := errors.Join(terr, aerr); err != nil {
		return nil, err
	}
	asked.Y.Tick.Marker = unnamed(len(rows))
	return svg(width, rowsHigh(len(rows)), times, asked)
}

func (r *Report) hitsPlot() ([]byte, error) {
	one := r.find("hits", "1 key, 64 callers, 1 KiB")
	spread := r.find("hits", "10,000 keys, 64 callers, 1 KiB")
	if one == nil || spread == nil {
		return nil, nil
	}
	rows := one.names()
	p := newPlot("Gets a second, 64 callers, 1 KiB")
	err := dots(p, "Gets a second", rows, []series{one.column("gets", "one key"), spread.column("gets", "10,000 keys")})
	if err != nil {
		return nil, err
	}
	return svg(width, rowsHigh(len(rows)), p)
}

func (r *Report) locksPlot() ([]byte, error) {
	return r.ladder("lock, contended", "wait p99", "contenders", "From asking for a lock to having it, p99", "ms", plot.LogScale{})
}

func (r *Report) readSharesPlot() ([]byte, error) {
	return r.ladder("read-write lock", "locks", "read-percent", "Locks a second, 32 callers on 4 instances", "locks a second", plot.LinearScale{})
}

// ladder draws one metric over one parameter, without the cases that differ in more than that.
func (r *Report) ladder(name, metric, param, title, unit string, scale plot.Normalizer) ([]byte, error) {
	var all []series
	var steps []plot.Tick
	at := make(map[string]int)
	for _, c := range r.cases(name) {
		if strings.HasPrefix(c.Name, "hand-over") || strings.Contains(c.Name, " on ") {
			continue
		}
		steps = append(steps, plot.Tick{Value: c.Params[param], Label: short(c.Params[param])})
		for _, row := range c.Rows {
			figure, ok := row.Of(metric)
			if !ok {
				continue
			}
			i, known := at[row.Name]
			if !known {
				i = len(all)
				at[row.Name], all = i, append(all, series{name: row.Name})
			}
			all[i].points = append(all[i].points, plotter.XY{X: c.Params[param], Y: figure.Median})
		}
	}
	if len(steps) < 2 {
		return nil, nil
	}
	p := newPlot(title)
	if err := lines(p, strings.ReplaceAll(param, "-", " "), unit, all); err != nil {
		return nil, err
	}
	p.X.Scale, p.X.Tick.Marker = scale, plot.ConstantTicks(steps)
	p.Legend.Left = true
	return svg(width, 280, p)
}

func (r *Report) cases(name string) []*Case {
	for _, s := range r.Scenarios {
		if s.Name == name {
			return s.Cases
		}
	}
	return nil
}

func (r *Report) find(scenario, name string) *Case {
	for _, c := range r.cases(scenario) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (c *Case) names() (names []string) {
	for _, row := range c.Rows {
		names = append(names, row.Name)
	}
	return names
}

// column is a metric of all rows, whose places are those of names. A logarithm of nothing cannot be drawn.
func (c *Case) column(metric, name string) series {
	s := series{name: name}
	for i, row := range c.Rows {
		if figure, ok := row.Of(metric); ok && figure.Median > 0 {
			s.points = append(s.points, plotter.XY{X: figure.Median, Y: float64(len(c.Rows) - 1 - i)})
		}
	}
	return s
}

func unnamed(rows int) plot.Ticker {
	return plot.TickerFunc(func(float64, float64) (ticks []plot.Tick) {
		for i := range rows {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: " "})
		}
		return ticks
	})
}

func rowsHigh(rows int) font.Length { return 90 + 27*font.Length(rows) }
