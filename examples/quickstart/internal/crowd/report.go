package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cacheguard/go/examples/internal/table"
)

func rowsOf(names []string, results []measured) [][]string {
	row := func(label string, cell func(measured) string) []string {
		cells := []string{label}
		for _, m := range results {
			cells = append(cells, cell(m))
		}
		return cells
	}
	count := func(label string, of func(measured) int64) []string {
		return row(label, func(m measured) string { return table.Count(of(m)) })
	}
	wait := func(label string, share float64) []string {
		return row(label, func(m measured) string { return table.Millis(m.wait(share)) })
	}
	rows := [][]string{
		append([]string{""}, names...),
		count("database queries", func(m measured) int64 { return m.queries }),
		count("expiries of the entry", func(m measured) int64 { return m.expiries }),
		row("queries per expiry", func(m measured) string { return table.Ratio(m.perExpiry()) }),
		count("calls answered", func(m measured) int64 { return int64(len(m.waits)) }),
		wait("latency of a call, p50", 0.50),
		wait("latency of a call, p99", 0.99),
		wait("latency of a call, max", 1),
		count("Redis commands", func(m measured) int64 { return m.commands }),
		row("Redis commands per call", func(m measured) string { return table.Hundredths(m.perCall()) }),
	}
	for _, m := range results {
		if m.failed > 0 {
			return append(rows, count("calls that failed", func(m measured) int64 { return int64(m.failed) }))
		}
	}
	return rows
}

// summary says what the table shows.
func summary(names []string, results []measured) string {
	var asked, waited []string
	for i, m := range results {
		asked = append(asked, queries(m.perExpiry())+" ("+names[i]+")")
		waited = append(waited, table.Millis(m.wait(1)))
	}
	return "Each time the entry expired, the database got " + list(asked) + ".\nThe slowest call took " + list(waited) + "."
}

func list(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return fmt.Sprintf("%s and %s", strings.Join(items[:last], ", "), items[last])
}

func queries(perExpiry float64) string {
	if table.Ratio(perExpiry) == "1.0" {
		return "1 query"
	}
	if perExpiry >= 10 {
		return table.Count(int64(perExpiry+0.5)) + " queries"
	}
	return table.Ratio(perExpiry) + " queries"
}

// How often the progress is shown: on a terminal it is one line that changes, elsewhere each time is a new line.
const (
	everyLive  = 250 * time.Millisecond
	everyPlain = 5 * time.Second
)

// progress shows how a run goes.
type progress struct {
	out  io.Writer
	live bool // out is a terminal
}

func newProgress(out io.Writer) progress {
	file, ok := out.(*os.File)
	if !ok {
		return progress{out: out}
	}
	info, err := file.Stat()
	return progress{out: out, live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// follow shows a line about the run now and then, and a last one when the func that it returns is called, which ends it.
func (p progress) follow(name string, of time.Duration, see func() sight) (over func()) {
	start := time.Now()
	line := func() string {
		now, s := min(time.Since(start), of), see()
		return fmt.Sprintf("  %-12s  %4.1f of %v   expiries %4s   queries %7s", name, now.Seconds(), of,
			table.Count(s.expiries), table.Count(s.queries))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // owner: the run; stop: stop; joined by over
		defer close(stopped)
		p.show(line, stop)
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (p progress) show(line func() string, stop <-chan struct{}) {
	every := everyPlain
	if p.live {
		every = everyLive
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	width := 0
	write := func() {
		text := line()
		if p.live {
			width = max(width, utf8.RuneCountInString(text)) // blanks over what is left of a longer line
			_, _ = fmt.Fprintf(p.out, "\r%-*s", width, text)
			return
		}
		_, _ = fmt.Fprintln(p.out, text)
	}
	for {
		select {
		case <-tick.C:
			write()
		case <-stop:
			write()
			if p.live {
				_, _ = fmt.Fprintln(p.out)
			}
			return
		}
	}
}
