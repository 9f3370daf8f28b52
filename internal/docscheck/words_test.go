package main

import "testing"

func TestWords(t *testing.T) {
	tests := map[string]struct{ file, text, want string }{
		"Who at the beginning":      {"a.md", "Who crashes, costs the others a lease.", "a.md:1: reads like a translation: \"Who crashes"},
		"Who after a sentence":      {"a.md", "A lease ends. Who has none\nwaits for nobody.", "Who has none waits"},
		"Whoever with a comma":      {"a.md", "Whoever waits, has a place.", "Whoever waits, has"},
		"Whoever as a subject":      {"a.md", "Whoever finds such a note completes the move.", ""},
		"a question":                {"a.md", "Who holds the lock?", ""},
		"of which somebody is told": {"a.md", "It is fetch, of which OnGet is told.", "of which"},
		"told by":                   {"a.md", "- that Redis is down is told by Hooks.", "is told by"},
		"told that":                 {"a.md", "A caller is told that it failed.", ""},
		"tells of":                  {"a.md", "A counter tells of hits.", "tells of"},
		"has it not done":           {"a.md", "SkipLocal has the local tier not asked.", "has the local tier not asked"},
		"has done it":               {"a.md", "It has the key, and has not asked.", ""},
		"whatever became of":        {"a.md", "It does so whatever became\nof ctx.", "whatever became of"},
		"in code":                   {"a.md", "See `whatever became of`.\n\n```text\nwhatever became of\n```", ""},
		"in a comment":              {"a/a.go", "package a\n\n// F does\n// so whatever\n// became of ctx.\nfunc F() {}\n", "a/a.go:3"},
		"in code of a comment":      {"a/a.go", "package a\n\n// F does this:\n//\n//\twhatever became of\nfunc F() {}\n", ""},
		"in a string":               {"a/a.go", "package a\n\nvar s = \"whatever became of\"\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, checkWords, files(map[string]string{test.file: test.text}), test.want)
		})
	}
}
