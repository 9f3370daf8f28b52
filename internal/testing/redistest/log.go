package redistest

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

// ReadLog reads what a child process wrote, an event on each line, whose fields are separated by spaces. There is none if the child
// was killed before it could write one.
func ReadLog[E any](tb testing.TB, path string, fields func(*E) []any) (all []E) {
	tb.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e E
		into := fields(&e)
		if n, err := fmt.Sscan(lines.Text(), into...); err != nil || n != len(into) {
			tb.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		all = append(all, e)
	}
	return all
}
