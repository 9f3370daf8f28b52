package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tested is what passed on a server.
type tested struct {
	server server
	suites []counts
}

func failures(results []tested) error {
	for _, r := range results {
		for i, c := range r.suites {
			if len(c.failed) > 0 {
				return fmt.Errorf("%s: %s: %s failed", r.server.version, suites[i].name, strings.Join(c.failed, ", "))
			}
		}
	}
	return nil
}

// page is docs/compatibility.md.
func page(results []tested, missing string, now time.Time) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# Compatibility")
	w("")
	w("*Reference.*")
	w("")
	w("What `make compat` found on %s. It runs tests of the library on each server that it can have here, and counts those that", now.Format("2 January 2006"))
	w("passed: on a single server, under Sentinel, on a cluster of three, and behind")
	w("[rules of serverless offerings](#rules-of-serverless-offerings). A test that fails runs again alone, up to three times, as a busy machine")
	w("makes tests late; %d of all did. The same tests passed on servers in one list.", again(results))
	w("")
	for len(results) > 0 {
		table := results[0].table()
		for _, r := range results {
			if r.table() == table {
				w("- %s (%s)", r.server.version, r.server.pack)
			}
		}
		w("\n%s", table)
		results = slices.DeleteFunc(slices.Clone(results), func(r tested) bool { return r.table() == table })
	}
	w("## Not tested")
	w("")
	w("%s", strings.TrimSpace(missing))
	w("")
	b.WriteString(rest)
	return b.String()
}

func again(results []tested) (n int) {
	for _, r := range results {
		for _, c := range r.suites {
			n += c.again
		}
	}
	return n
}

// table is the same for servers on which the same tests passed.
func (t tested) table() string {
	var b strings.Builder
	b.WriteString("| tests that passed | single | Sentinel | cluster | rules of serverless offerings |\n|---|---|---|---|---|\n")
	for i, c := range t.suites {
		fmt.Fprintf(&b, "| %s%s |", suites[i].name, c.trouble())
		for _, n := range c.passed {
			fmt.Fprintf(&b, " %s |", strings.TrimPrefix(strconv.Itoa(n), "0"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// trouble is what stands behind the name: the tests that failed, or that none ran.
func (c counts) trouble() string {
	switch {
	case len(c.failed) > 0:
		return ", **failed: " + strings.Join(slices.Sorted(slices.Values(c.failed)), ", ") + "**"
	case c.passed == [kinds]int{} && len(c.skipped) > 0:
		return ", skipped"
	}
	return ""
}
