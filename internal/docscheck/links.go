package main

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+["'(][^)]*)?\)`)
	referenceLink = regexp.MustCompile(`^\s{0,3}\[[^\]^][^\]]*\]:\s+<?([^\s>]+)`)
	htmlLink      = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
	codeSpan      = regexp.MustCompile("`[^`]*`")
	inScheme      = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:|^//`)
)

// checkLinks follows the links of Markdown files that stay in the repository.
func checkLinks(t tree) ([]problem, error) {
	pages := map[string]page{}
	files := t.named("*.md")
	for _, file := range files {
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		pages[file] = parsePage(text)
	}
	var found []problem
	for _, file := range files {
		for i, line := range pages[file].lines {
			for _, target := range links(line) {
				if wrong := checkLink(t, pages, file, target); wrong != "" {
					found = append(found, problem{file, i + 1, "the link to " + target + " leads nowhere: " + wrong})
				}
			}
		}
	}
	return found, nil
}

// links returns the targets in a line of prose that are no addresses elsewhere.
func links(line string) []string {
	// A code span inside the words of a link must go without taking the link with it.
	line = codeSpan.ReplaceAllString(line, "code")
	var targets []string
	for _, kind := range []*regexp.Regexp{inlineLink, referenceLink, htmlLink} {
		for _, m := range kind.FindAllStringSubmatch(line, -1) {
			if !inScheme.MatchString(m[1]) {
				targets = append(targets, m[1])
			}
		}
	}
	return targets
}

// checkLink says what is wrong with a link in file; a leading slash means the root of the repository.
func checkLink(t tree, pages map[string]page, file, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "it is malformed"
	}
	name := file
	switch {
	case strings.HasPrefix(u.Path, "/"):
		name = path.Clean(strings.TrimPrefix(u.Path, "/"))
	case u.Path != "":
		name = path.Join(path.Dir(file), u.Path)
	}
	if !t.has(name) {
		return "the repository has no " + name
	}
	if p, ok := pages[name]; ok && u.Fragment != "" && !p.anchors()[u.Fragment] {
		return name + " has no heading #" + u.Fragment
	}
	return ""
}
