package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// row is a line of the table.
type row struct{ label, byHand, guarded string }

func table(byHand, guarded measured) []row {
	count := func(label string, of func(measured) int64) row {
		return row{label, grouped(of(byHand)), grouped(of(guarded))}
	}
	wait := func(label string, share float64) row {
		return row{label, millis(byHand.wait(share)), millis(guarded.wait(share))}
	}
	rows := []row{
		{"", "by hand", "cacheguard"},
		count("database queries", func(m measured) int64 { return m.queries }),
		count("expiries of the entry", func(m measured) int64 { return m.expiries }),
		{"queries per expiry", ratio(byHand.perExpiry()), ratio(guarded.perExpiry())},
		count("calls answered", func(m measured) int64 { return int64(len(m.waits)) }),
		wait("latency of a call, p50", 0.50),
		wait("latency of a call, p99", 0.99),
		wait("latency of a call, max", 1),
		count("Redis commands", func(m measured) int64 { return m.commands }),
		{"Redis commands per call", hundredths(byHand.perCall()), hundredths(guarded.perCall())},
	}
	if byHand.failed+guarded.failed > 0 {
		rows = append(rows, count("calls that failed", func(m measured) int64 { return int64(m.failed) }))
	}
	return rows
}

// writeTable aligns the labels to the left and the numbers to the right.
func writeTable(w io.Writer, rows []row) {
	var label, byHand, guarded int
	for _, r := range rows {
		label = max(label, utf8.RuneCountInString(r.label))
		byHand = max(byHand, utf8.RuneCountInString(r.byHand))
		guarded = max(guarded, utf8.RuneCountInString(r.guarded))
	}
	for i, r := range rows {
		_, _ = fmt.Fprintf(w, "  %-*s   %*s   %*s\n", label, r.label, byHand, r.byHand, guarded, r.guarded)
		if i == 0 {
			_, _ = fmt.Fprintf(w, "  %s\n", strings.Repeat("─", label+byHand+guarded+6))
		}
	}
}

// summary says what the table shows.
func summary(byHand, guarded measured) string {
	return fmt.Sprintf("Each time the entry expired, the database got %s by hand and %s with cacheguard;\n"+
		"the slowest call took %s by hand and %s with cacheguard.",
		queries(byHand.perExpiry()), queries(guarded.perExpiry()), millis(byHand.wait(1)), millis(guarded.wait(1)))
}

func queries(perExpiry float64) string {
	if ratio(perExpiry) == "1.0" {
		return "1 query"
	}
	if perExpiry >= 10 {
		return grouped(int64(perExpiry+0.5)) + " queries"
	}
	return ratio(perExpiry) + " queries"
}

// ratio writes a number with one decimal.
func ratio(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// hundredths writes a number with two decimals.
func hundredths(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }

// millis writes a duration in milliseconds, the short ones with one decimal.
func millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return ratio(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return grouped(d.Round(time.Millisecond).Milliseconds()) + " ms"
}

// grouped writes a count with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
