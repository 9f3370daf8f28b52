package main

import (
	"fmt"
	"slices"
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
	w("What `make compat` found on %s. It runs tests of the library on each server that it can have here, and writes this page; a cell is how many", now.Format("2 January 2006"))
	w("tests passed: on a single server, under Sentinel, on a cluster of three, and behind [rules of serverless offerings](#rules-of-serverless-offerings). A test that fails runs again alone, up to three")
	w("times, as a busy machine makes tests late; %d of all did. The tests that count here are not all: the others run on Redis alone.", again(results))
	w("")
	w("| server | package |"+strings.Repeat(" %s |", len(suites))+" rules of serverless offerings |", names()...)
	w("|---|---|" + strings.Repeat("---|", len(suites)+1))
	for _, r := range results {
		cells := []any{r.server.version, r.server.pack}
		for _, c := range r.suites {
			cells = append(cells, c.cell())
		}
		w("| %s | %s |"+strings.Repeat(" %s |", len(r.suites)+1), append(cells, r.serverless())...)
	}
	w("")
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

func names() (all []any) {
	for _, s := range suites {
		all = append(all, s.name)
	}
	return all
}

// serverless is the cell of all suites under the rules of serverless offerings.
func (t tested) serverless() string {
	var words []string
	for i, c := range t.suites {
		if n := c.passed[serverless]; n > 0 {
			words = append(words, fmt.Sprint(suites[i].name, " ", n))
		}
	}
	return strings.Join(words, ", ")
}

// cell is as "33 · 33 · 33 · 33", without kinds that have no tests.
func (c counts) cell() string {
	var words []string
	for kind, n := range c.passed[:serverless] {
		if n > 0 {
			words = append(words, fmt.Sprint([]string{"single ", "Sentinel ", "cluster "}[kind], n))
		}
	}
	if len(words) == 0 && len(c.skipped) > 0 {
		words = []string{"skipped"}
	}
	if len(c.failed) > 0 {
		slices.Sort(c.failed)
		words = append(words, "**failed: "+strings.Join(c.failed, ", ")+"**")
	}
	return strings.Join(words, ", ")
}
