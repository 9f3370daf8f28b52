package main

import (
	"fmt"

	"github.com/cacheguard/go/examples/internal/table"
)

func rowsOf(byHand, guarded measured) [][]string {
	count := func(label string, of func(measured) int64) []string {
		return []string{label, table.Count(of(byHand)), table.Count(of(guarded))}
	}
	wait := func(label string, share float64) []string {
		return []string{label, table.Millis(byHand.wait(share)), table.Millis(guarded.wait(share))}
	}
	rows := [][]string{
		{"", "by hand", "cacheguard"},
		count("database queries", func(m measured) int64 { return m.queries }),
		count("expiries of the entry", func(m measured) int64 { return m.expiries }),
		{"queries per expiry", table.Ratio(byHand.perExpiry()), table.Ratio(guarded.perExpiry())},
		count("calls answered", func(m measured) int64 { return int64(len(m.waits)) }),
		wait("latency of a call, p50", 0.50),
		wait("latency of a call, p99", 0.99),
		wait("latency of a call, max", 1),
		count("Redis commands", func(m measured) int64 { return m.commands }),
		{"Redis commands per call", table.Hundredths(byHand.perCall()), table.Hundredths(guarded.perCall())},
	}
	if byHand.failed+guarded.failed > 0 {
		rows = append(rows, count("calls that failed", func(m measured) int64 { return int64(m.failed) }))
	}
	return rows
}

// summary says what the table shows.
func summary(byHand, guarded measured) string {
	return fmt.Sprintf("Each time the entry expired, the database got %s by hand and %s with cacheguard;\n"+
		"the slowest call took %s by hand and %s with cacheguard.",
		queries(byHand.perExpiry()), queries(guarded.perExpiry()), table.Millis(byHand.wait(1)), table.Millis(guarded.wait(1)))
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
