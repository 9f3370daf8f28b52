package main

import (
	"regexp"
	"slices"
	"strings"
)

// measured is the page with the figures that others quote.
const measured = "bench/RESULTS.md"

var (
	// quotation is text whose numbers stand in a row of that page, which the comment names by how it begins:
	// 89 ms <!-- figure: slowest answer -->.
	quotation = regexp.MustCompile(`(.*?)<!--\s*figure:\s*(.*?)\s*-->`)
	number    = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// checkFigures looks for quoted figures that are no longer what was measured. Of a line, it checks each number from its beginning, or from
// the comment before.
func checkFigures(t tree) ([]problem, error) {
	var rows []string
	if t.has(measured) {
		text, err := t.read(measured)
		if err != nil {
			return nil, err
		}
		rows = parsePage(text).lines
	}
	return checkPages(t, func(lines []string, report func(line int, text string)) {
		for i, line := range lines {
			for _, m := range quotation.FindAllStringSubmatch(line, -1) {
				report := func(text string) { report(i+1, text) }
				compareFigures(rows, m[2], linkSyntax.ReplaceAllString(m[1], "$1"), report)
			}
		}
	})
}

// compareFigures reports the numbers of the text that the named row does not have.
func compareFigures(rows []string, name, text string, report func(text string)) {
	var found []string
	for _, row := range rows {
		if strings.HasPrefix(row, "| "+name) {
			found = append(found, row)
		}
	}
	if len(found) != 1 || name == "" {
		report(measured + " has no row that begins with \"" + name + "\", or several")
		return
	}
	have := number.FindAllString(found[0], -1)
	for _, n := range number.FindAllString(text, -1) {
		if !slices.Contains(have, n) {
			report(n + " is not in " + measured + ": " + found[0])
		}
	}
}
