package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	example       = regexp.MustCompile(`^<!--\s*(example|file):\s*([^\s,]+)(, a part)?\s*-->$`)
	exampleInText = regexp.MustCompile(`^\s*<!--\s*(?:example|file)\b`)
)

// checkSnippets compares the Go code in Markdown with the Examples and files it is copied from.
func checkSnippets(t tree) ([]problem, error) {
	var found []problem
	for _, file := range t.named("*.md") {
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		p := parsePage(text)
		marked := 0
		for _, b := range p.blocks {
			m := example.FindStringSubmatch(b.marker)
			if m != nil {
				marked++
			}
			wrong, err := checkSnippet(t, file, b, m)
			if err != nil {
				return nil, err
			}
			if wrong != "" {
				found = append(found, problem{file, b.line, wrong})
			}
		}
		if line, markers := p.markers(); markers > marked {
			found = append(found, problem{file, line, "an example comment has no block of code after it, or is malformed"})
		}
	}
	return found, nil
}

// checkSnippet says what is wrong with a block whose marker is m, if it has one.
func checkSnippet(t tree, file string, b block, m []string) (string, error) {
	switch {
	case m == nil && b.info == "go" && forUsers(file):
		return "this Go code is not tied to an Example: put <!-- example: DIR/ExampleName -->, or none, before it", nil
	case m == nil || m[2] == "none":
		return "", nil
	}
	body, err := original(t, m[1], m[2])
	if err != nil {
		return "", err
	}
	if body == nil {
		return fmt.Sprintf("there is no %s %s", m[1], m[2]), nil
	}
	code := normal(b.code)
	if m[3] != "" {
		body = part(body, code)
	}
	for i := range max(len(code), len(body)) {
		if i >= len(code) || i >= len(body) || code[i] != body[i] {
			return fmt.Sprintf("differs from %s in line %d: here %s, there %s", m[2], i+1, quoted(code, i), quoted(body, i)), nil
		}
	}
	return "", nil
}

// forUsers reports whether a page is for those who copy code from it.
func forUsers(file string) bool { return file == "README.md" || strings.HasPrefix(file, "docs/") }

// original returns the lines that a block is copied from, or nil when there are none: the body of an Example, or a file.
func original(t tree, kind, name string) ([]string, error) {
	if kind == "example" {
		dir, name := path.Split(name)
		return exampleBody(t, path.Clean(dir), name)
	}
	if !slices.Contains(t.files, name) {
		return nil, nil
	}
	text, err := t.read(name)
	return normal(strings.Split(text, "\n")), err
}

// part is the part of the body that equals the code, or else one that begins like it and is no longer.
func part(body, code []string) []string {
	if len(code) == 0 {
		return body
	}
	for begin := range body {
		if rest := body[begin:]; len(rest) >= len(code) && slices.Equal(rest[:len(code)], code) {
			return code
		}
	}
	begin := max(0, slices.Index(body, code[0]))
	return body[begin:min(begin+len(code), len(body))]
}

func quoted(lines []string, i int) string {
	if i >= len(lines) {
		return "it has ended"
	}
	return fmt.Sprintf("%q", lines[i])
}

// markers counts the example comments of the page and returns the line of the last.
func (p page) markers() (line, count int) {
	for i, text := range p.lines {
		if exampleInText.MatchString(text) {
			line = i + 1
			count++
		}
	}
	return line, count
}

// normal returns the lines without their indentation, and without blank lines at either end.
func normal(lines []string) []string {
	trimmed := make([]string, 0, len(lines))
	for _, line := range lines {
		trimmed = append(trimmed, strings.TrimSpace(line))
	}
	for len(trimmed) > 0 && trimmed[0] == "" {
		trimmed = trimmed[1:]
	}
	for len(trimmed) > 0 && trimmed[len(trimmed)-1] == "" {
		trimmed = trimmed[:len(trimmed)-1]
	}
	return slices.Clip(trimmed)
}
