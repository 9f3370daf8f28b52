package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// generated is the line that marks code that a program wrote.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// checkPackageComments finds the packages that do not say what they are. Packages of tests alone need not, nor does generated code.
func checkPackageComments(t tree) ([]problem, error) {
	silent := map[string]problem{} // by directory
	spoken := map[string]bool{}
	for _, file := range t.named("*.go") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains("/"+file, "/testdata/") {
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		if generated.MatchString(text) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(file)
		if parsed.Doc.Text() != "" {
			spoken[dir] = true
		}
		silent[dir] = problem{file, 1, fmt.Sprintf("package %s (%s) has no package comment", parsed.Name.Name, dir)}
	}
	maps.DeleteFunc(silent, func(dir string, _ problem) bool { return spoken[dir] })
	var found []problem
	for _, dir := range slices.Sorted(maps.Keys(silent)) {
		found = append(found, silent[dir])
	}
	return found, nil
}
