// Package table prints the tables that the examples end with.
package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Write prints rows, the first of which is the header. It aligns the first column to the left and the others to the right.
func Write(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for column, cell := range row {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range rows {
		var line strings.Builder
		for column, cell := range row {
			blanks := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column == 0 {
				line.WriteString("  " + cell + blanks)
			} else {
				line.WriteString("   " + blanks + cell)
			}
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
		if i == 0 {
			_, _ = fmt.Fprintln(w, "  "+strings.Repeat("─", utf8.RuneCountInString(line.String())-2))
		}
	}
}

// Quantile returns the time within which the given share of the waits were over, 0 if there were none: the smallest wait
// that at least that share did not exceed.
func Quantile(waits []time.Duration, share float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(waits))
	rank := int(math.Ceil(share*float64(len(sorted)) - 1e-9)) // 0.07 * 100 is a little more than 7
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratio writes a number with one decimal.
func Ratio(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// Hundredths writes a number with two decimals.
func Hundredths(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }

// Millis writes a duration in milliseconds, the short ones with one decimal.
func Millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return Ratio(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return Count(d.Round(time.Millisecond).Milliseconds()) + " ms"
}

// Count writes a count with a comma between thousands.
func Count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
