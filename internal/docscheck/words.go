package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// A turn is a turn of phrase that is not to come back, and what to write instead.
type turn struct {
	pattern *regexp.Regexp
	instead string
}

// turns are patterns of text in which a line break is a space and code is left out. Questions may begin with Who.
var turns = []turn{
	{regexp.MustCompile(`(?:^|[.:;] )(?:Who|Whom|Whose)\b[^.?!]*[.!]`), "say it with a noun as the subject: A crashed holder delays …"},
	{regexp.MustCompile(`(?:^|[.:;] )[Ww]hoever [^.?!,;:]*, (?:\w+s|may|can|must|will|has|is|does)\b`), "say it with a noun as the subject, without a comma after it"},
	{regexp.MustCompile(`\b[Oo]f (?:which|whom)\b[^.?!]*\b(?:is|are|was|were) told\b`), "say who reports it: observed calls f and reports to OnGet"},
	{regexp.MustCompile(`\b(?:is|are|was|were|be|been) told (?:by|of|in)\b`), "is reported by, hears of, is described in"},
	{regexp.MustCompile(`\b(?:tells?|telling|told) of\b`), "reports"},
	{regexp.MustCompile(`\b(?:has|have|had) (?:the|its|their|a|an) (?:[\w-]+ ){1,2}(?:not \w+ed|asked|told|verified)\b`), "say what acts: SkipLocal bypasses the local tier"},
	{regexp.MustCompile(`\b(?:whatever|whichever|whoever) (?:became|becomes|become) of\b`), "whatever happens to, ignores"},
	{regexp.MustCompile(`\b[Ww]hat contradicts itself\b`), "name the thing: A response whose …"},
	{regexp.MustCompile(`\b[Uu]ntil then\b[^.?!]*\bmeanwhile\b|\b[Mm]eanwhile\b[^.?!]*\buntil then\b`), "one of the two is enough"},
	{regexp.MustCompile(`\bWho may (?:die|crash|fail)\b`), "A caller may die, be cancelled or lose a reply at any point"},
	{regexp.MustCompile(`\bhas (?:the|a|an|its) (?:[\w-]+ ){1,2}(?:answer|compared|made|make|read)\b`), "say what acts: lets the handler answer, begins to read the keys"},
	{regexp.MustCompile(`\b(?:made|loaded) anew\b`), "rebuilt, remade, loaded again"},
	{regexp.MustCompile(`\bas ever\b`), "as usual"},
	{regexp.MustCompile(`\btwo times (?:X\b|[A-Z])`), "twice"},
	{regexp.MustCompile(`(?:^|[.:;] )And their limits\.`), "These have limits."},
	{regexp.MustCompile(`\b[Ww]hat is said of\b|\bsays of (?:an?|each|it|one|the)\b`), "everything said of, says about"},
	{regexp.MustCompile(`\bends, ends\b`), "A wait that ends leaves nothing behind"},
	{regexp.MustCompile(`\bfor so long(?:[.,;:)]|$)`), "for that long"},
	{regexp.MustCompile(`(?:[^e]|[^r]e) (?:is|are) no errors?\b`), "is not an error"},
	{regexp.MustCompile(`\b[Ww]hat (?:becomes|became|has become) of\b`), "the result of, what happens to"},
	{regexp.MustCompile(`\b[Ss]ee(?:s|ing)? to it\b`), "makes sure"},
	{regexp.MustCompile(`, before which (?:it|they)\b`), "It runs before …"},
	{regexp.MustCompile(`\bfor so many\b`), "for that many"},
	{regexp.MustCompile(`\bhow things stand\b`), "the state of, inspects"},
	{regexp.MustCompile(`\b(?:is|are|was|were) (?:that|those) of\b`), "name the thing: children returns the children of a process"},
	{regexp.MustCompile(`\blikewise\b`), "the same, as above"},
	{regexp.MustCompile(`\b(?:[Tt]o|[Oo]f|[Ff]or|[Ff]rom|[Bb]y|[Ww]ith|[Tt]hat) who (?:\w+s|has|is|gave|asked)\b`), "a caller that waits, the waiters"},
	{regexp.MustCompile(`\b(?:tells?|wakes?|hands? \w+ \w+ to) who\b`), "those that wait"},
}

// prose is where turns of phrase are looked for: Markdown, and the comments of Go files and scripts.
var prose = []struct {
	files    string
	passages func(file, text string) ([]passage, error)
}{
	{"*.md", func(_, text string) ([]passage, error) { return paragraphs(parsePage(text).lines), nil }},
	{"*.go", commentsOf},
	{"*.lua", func(_, text string) ([]passage, error) { return luaComments(text), nil }},
}

// checkWords finds turns of phrase that were swept out.
func checkWords(t tree) ([]problem, error) {
	var found []problem
	for _, kind := range prose {
		for _, file := range t.named(kind.files) {
			text, err := t.read(file)
			if err != nil {
				return nil, err
			}
			passages, err := kind.passages(file, text)
			if err != nil {
				return nil, err
			}
			for _, p := range passages {
				found = append(found, p.turns(file)...)
			}
		}
	}
	return found, nil
}

// A passage is text that is read in one go, without line breaks.
type passage struct {
	line int
	text string
}

// turns returns the problems of a passage.
func (p passage) turns(file string) []problem {
	var found []problem
	for _, turn := range turns {
		if m := turn.pattern.FindString(p.text); m != "" {
			found = append(found, problem{file, p.line, "reads like a translation: \"" + strings.TrimLeft(m, ".:; ") + "\" (" + turn.instead + ")"})
		}
	}
	return found
}

var listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.|#+|\|) ?`)

// paragraphs takes prose apart at blank lines, and before each item of a list, heading and row of a table.
func paragraphs(lines []string) []passage {
	var all []passage
	open := false
	for i, line := range lines {
		item := listItem.FindString(line)
		words := strings.TrimSpace(codeSpan.ReplaceAllString(line[len(item):], "X"))
		words = strings.Trim(words, "*_")
		switch {
		case words == "":
			open = false
		case open && item == "":
			last := &all[len(all)-1]
			last.text += " " + words
		default:
			all = append(all, passage{i + 1, words})
			open = true
		}
	}
	return all
}

// commentsOf returns the comments of a Go file, paragraph by paragraph, without the code in them.
func commentsOf(file, text string) ([]passage, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []passage
	for _, group := range parsed.Comments {
		lines := strings.Split(group.Text(), "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "\t") { // code
				lines[i] = ""
			}
		}
		first := files.Position(group.Pos()).Line
		for _, p := range paragraphs(lines) {
			all = append(all, passage{first + p.line - 1, p.text})
		}
	}
	return all, nil
}

// luaComments returns the comments of a script, paragraph by paragraph, without the code before them.
func luaComments(text string) []passage {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		_, lines[i], _ = strings.Cut(line, "--")
	}
	return paragraphs(lines)
}
