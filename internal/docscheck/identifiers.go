package main

import (
	"path"
	"regexp"
	"strings"
)

var (
	// declared is an exported function, type, variable or constant, also one of a group.
	declared  = regexp.MustCompile(`(?m)^(?:func|type|var|const|\t)\s*([A-Z]\w*)\b`)
	qualified = regexp.MustCompile(`\b[a-z]\w*\.[A-Z]\w*\b`)

	function = regexp.MustCompile(`(?m)^func ([a-z]\w*)[(\[]`)
	called   = regexp.MustCompile(`(?:^|[^\w.])([a-z]\w*)\(`)
)

// checkIdentifiers looks for what only tests have: in all of Markdown, what is taken from a package of the repository, and in its Go code
// the functions that are called, unless the page mentions them. The reader's program would not compile.
func checkIdentifiers(t tree) ([]problem, error) {
	tested, err := testIdentifiers(t)
	if err != nil {
		return nil, err
	}
	var found []problem
	for _, file := range t.named("*.md") {
		if file == "CHANGELOG.md" { // what was there once
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		report := func(line int, name string) { found = append(found, problem{file, line, "only tests have " + name}) }
		for i, line := range strings.Split(text, "\n") {
			for _, name := range qualified.FindAllString(line, -1) {
				if tested[name] {
					report(i+1, name)
				}
			}
		}
		for _, b := range parsePage(text).blocks {
			for _, call := range b.calls() {
				if name := call.text; tested[name] && !strings.Contains(text, "`"+name+"`") {
					report(call.line, name)
				}
			}
		}
	}
	return found, nil
}

// calls are the functions that Go code calls by their names alone.
func (b block) calls() (all []problem) {
	for i, line := range b.code {
		for _, m := range called.FindAllStringSubmatch(line, -1) {
			if b.info == "go" {
				all = append(all, problem{line: b.line + i + 1, text: m[1]})
			}
		}
	}
	return all
}

// testIdentifiers are the identifiers that only tests have: exported ones as PACKAGE.NAME, and functions.
func testIdentifiers(t tree) (map[string]bool, error) {
	tested, shipped := make(map[string]bool), make(map[string]bool)
	for _, file := range t.named("*.go") {
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		into := shipped
		if strings.HasSuffix(file, "_test.go") {
			into = tested
		}
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			into[path.Base(path.Dir(file))+"."+m[1]] = true
		}
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			into[m[1]] = true
		}
	}
	for name := range shipped {
		delete(tested, name)
	}
	return tested, nil
}
