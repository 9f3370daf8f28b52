package main

import (
	"regexp"
	"strconv"
	"strings"
)

// A block is a fenced block of code in Markdown.
type block struct {
	line   int    // of the opening fence, from 1
	info   string // the language after the opening fence
	marker string // the last line of text before it
	code   []string
}

// A page is a Markdown file, taken apart.
type page struct {
	lines  []string // with the lines of the blocks empty, so that only prose is left
	blocks []block
}

var fence = regexp.MustCompile("^\\s*(```+|~~~+)\\s*([^\\s`]*)")

func parsePage(text string) page {
	var p page
	var open string // the fence of the block we are in
	var last string // the last line that was not blank
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			open = m[1]
			p.blocks = append(p.blocks, block{line: i + 1, info: m[2], marker: last})
			last = ""
			line = ""
		case open != "" && m != nil && m[2] == "" && strings.HasPrefix(m[1], open):
			open = ""
			line = ""
		case open != "":
			b := &p.blocks[len(p.blocks)-1]
			b.code = append(b.code, line)
			line = ""
		case strings.TrimSpace(line) != "":
			last = strings.TrimSpace(line)
		}
		p.lines = append(p.lines, line)
	}
	return p
}

var (
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linkSyntax = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	htmlAnchor = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// anchors returns what a #fragment of a link to the page can be, by GitHub's rules.
func (p page) anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, line := range p.lines {
		for _, m := range htmlAnchor.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		words := strings.ToLower(linkSyntax.ReplaceAllString(m[1], "$1"))
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(words, ""), " ", "-")
		anchors[unused(slug, anchors)] = true
	}
	return anchors
}

// unused returns slug, with a number when an earlier heading has it.
func unused(slug string, taken map[string]bool) string {
	for n, next := 1, slug; ; n++ {
		if !taken[next] {
			return next
		}
		next = slug + "-" + strconv.Itoa(n)
	}
}
