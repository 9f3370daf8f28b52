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

// machinePath matches a path that only one machine has. The text before it must not be part of a longer path or of
// an address. The names are apart from the slashes because this file is checked too.
var machinePath = regexp.MustCompile(
	"(?:^|[\\s\"'`(\\[{<>=:,;|]|file://)" + `(/(?:work|root|home|tmp)/[\w.~$-]*)|(\.\./` + `shared)\b`)

// checkPaths finds paths of the machine that a file was written on.
func checkPaths(t tree) ([]problem, error) {
	var found []problem
	for _, file := range t.files {
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(text, 0) { // not text
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if m := machinePath.FindStringSubmatch(line); m != nil {
				found = append(found, problem{file, i + 1, m[1] + m[2] + " exists on one machine only"})
			}
		}
	}
	return found, nil
}

// hasty matches a time-out or a lease of less than a second. A machine that is busy exceeds it.
var hasty = regexp.MustCompile(`\b(?:RedisTimeout|LeaseTTL)(?:: [^,}]*| = .*)\btime\.(?:Millisecond|Microsecond)\b`)

// checkPatience finds tests whose Redis has milliseconds to answer, or whose leases last as long, without a comment on the line that says why
// they do not fail on a busy machine. Benchmarks and proofs, which have modules of their own, disturb as they see fit, and tests of a Config
// run nothing.
func checkPatience(t tree) ([]problem, error) {
	var found []problem
	for _, file := range t.named("*_test.go") {
		if strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "proof/") || strings.HasSuffix(file, "/config_test.go") {
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(text, "\n") {
			if hasty.MatchString(line) && !strings.Contains(line, "//") {
				found = append(found, problem{file, i + 1, "a busy machine takes longer: use redistest.Patience or Brisk, or say here why it does no harm"})
			}
		}
	}
	return found, nil
}
