package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var output = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)

// exampleBody returns the lines of the body of an Example in the test files of dir, or nil when there is none.
func exampleBody(t tree, dir, name string) ([]string, error) {
	if !strings.HasPrefix(name, "Example") {
		return nil, nil
	}
	for _, file := range t.named("*_test.go") {
		if path.Dir(file) != dir {
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", name, err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name && f.Body != nil {
				from, to := f.Body.Lbrace+1, endOfCode(f, parsed.Comments)
				body := text[files.Position(from).Offset:files.Position(to).Offset]
				return normal(strings.Split(body, "\n")), nil
			}
		}
	}
	return nil, nil
}

// endOfCode returns where the body ends, or the comment begins that holds the expected output.
func endOfCode(f *ast.FuncDecl, comments []*ast.CommentGroup) token.Pos {
	end := f.Body.Rbrace
	for _, c := range comments {
		if c.Pos() > f.Body.Lbrace && c.End() < f.Body.Rbrace && output.MatchString(c.Text()) {
			end = c.Pos()
		}
	}
	return end
}

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
