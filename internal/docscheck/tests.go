package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	testName = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)[A-Z]\w*$`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	span     = regexp.MustCompile("`([^`]+)`")
)

// checkTests looks for the tests that Markdown names: anywhere by the name of their function, and in a column of a table that is headed
// `test` also by the name of a subtest, which has to be a string somewhere in the code.
func checkTests(t tree) ([]problem, error) {
	known, err := testsOf(t)
	if err != nil {
		return nil, err
	}
	return checkPages(t, func(lines []string, report func(line int, text string)) {
		column := -1 // of the tests
		for i, line := range lines {
			cells := cellsOf(line)
			if column < 0 || len(cells) == 1 { // a new table, or none
				column = columnOf(cells, "test")
			}
			for j, cell := range cells {
				for _, m := range span.FindAllStringSubmatch(cell, -1) {
					if !known.has(m[1], j == column) {
						report(i+1, fmt.Sprintf("there is no test %q", m[1]))
					}
				}
			}
		}
	})
}

// tests are those there are.
type tests struct {
	functions map[string]bool
	code      string // all of it, as subtests have their names from anywhere
}

func testsOf(t tree) (known tests, err error) {
	known.functions = make(map[string]bool)
	var all strings.Builder
	for _, file := range t.named("*.go") {
		text, err := t.read(file)
		if err != nil {
			return tests{}, err
		}
		all.WriteString(text)
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			known.functions[m[1]] = true
		}
	}
	known.code = all.String()
	return known, nil
}

// has reports whether there is a test of the name. A word that does not look like a test's name may be anything, unless a test has to be there.
func (t tests) has(name string, wanted bool) bool {
	if testName.MatchString(name) {
		return t.functions[name]
	}
	return !wanted || strings.Contains(t.code, `"`+name+`"`)
}

// cellsOf are the cells of a row of a table; of another line, the line.
func cellsOf(line string) []string {
	if row, is := strings.CutPrefix(strings.TrimSpace(line), "|"); is {
		return strings.Split(strings.TrimSuffix(row, "|"), "|")
	}
	return []string{line}
}

// columnOf is which cell has the heading.
func columnOf(cells []string, heading string) int {
	for i, cell := range cells {
		if strings.TrimSpace(cell) == heading && len(cells) > 1 {
			return i
		}
	}
	return -1
}
