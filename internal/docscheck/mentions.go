package main

import (
	"regexp"
	"strings"
)

// mention is a code span that can be a path, of the repository or of one of its folders: `internal/redis/send/doc.go`.
var mention = regexp.MustCompile("`([a-z]+(?:/[\\w.-]+)+)/?`")

// checkMentions looks for the paths that Markdown names without a link.
func checkMentions(t tree) ([]problem, error) {
	return checkPages(t, func(lines []string, report func(line int, text string)) {
		for i, line := range lines {
			for _, m := range mention.FindAllStringSubmatch(line, -1) {
				if top, _, _ := strings.Cut(m[1], "/"); t.has(top) && !t.hasWithin(m[1]) {
					report(i+1, "the repository has no "+m[1])
				}
			}
		}
	})
}

// checkPages has the prose of each Markdown file checked that is about what there is now.
func checkPages(t tree, check func(lines []string, report func(line int, text string))) ([]problem, error) {
	var found []problem
	for _, file := range t.named("*.md") {
		if file == "CHANGELOG.md" { // what was there once
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		check(parsePage(text).lines, func(line int, text string) { found = append(found, problem{file, line, text}) })
	}
	return found, nil
}

// hasWithin says whether some folder of the tree has a file or a directory of that name.
func (t tree) hasWithin(name string) bool {
	for _, file := range t.files {
		if strings.Contains("/"+file+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}
