package main

import (
	"fmt"
	"strings"

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
