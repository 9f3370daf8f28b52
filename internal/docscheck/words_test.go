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
		"who may die":               {"a.md", "Who may die, and when:", "Who may die"},
		"has it read":               {"a.md", "It has the keys read.", "has the keys read"},
		"has them answer":           {"a.md", "It has the handlers answer.", "has the handlers answer"},
		"has read":                  {"a.md", "It has the key, and has read it.", ""},
		"made anew":                 {"a.md", "The page is made\nanew.", "made anew"},
		"as ever":                   {"a.md", "It works as ever.", "as ever"},
		"two times a setting":       {"a.md", "It takes two times `LeaseTTL`.", "two times X"},
		"two times":                 {"a.md", "It was read two times.", ""},
		"and their limits":          {"a.md", "And their limits. None.", "And their limits"},
		"what is said of":           {"a.md", "What is said of Get holds.", "What is said of"},
		"says of":                   {"a.md", "It says of each page what it is.", "says of"},
		"ends, ends":                {"a.md", "A wait that ends, ends without a trace.", "ends, ends"},
		"for so long":               {"a.md", "It waits for so long.", "for so long"},
		"for so long that":          {"a.md", "It waited for so long that it gave up.", ""},
		"is no error":               {"a.md", "Absence is no error.", "is no error"},
		"there is no error":         {"a.md", "It is called if there is no error.", ""},
		"what becomes of":           {"a.md", "It says what becomes of it.", "what becomes of"},
		"in code":                   {"a.md", "See `whatever became of`.\n\n```text\nwhatever became of\n```", ""},
		"sees to it":                {"a.md", "Close sees to it that nothing is left.", "sees to it"},
		"before which":              {"a.md", "It is the common case, before which it runs.", "before which it"},
		"for so many":               {"a.md", "It stands for so many ms.", "for so many"},
		"how things stand":          {"a.md", "It says how things stand.", "how things stand"},
		"tells who":                 {"a.md", "It ends the lease, and tells who waits.", "tells who"},
		"is that of":                {"a.md", "The fence is that of the last key.", "is that of"},
		"likewise":                  {"a.md", "It is kept likewise.", "likewise"},
		"who without a noun":        {"a.md", "It goes to who waits.", "to who waits"},
		"who after a noun":          {"a.md", "It goes to those who wait.", ""},
		"in a script":               {"a.lua", "-- A lock.\n-- Lives whatever\n-- became of it.\nreturn 1\n", "a.lua:1"},
		"behind code of a script":   {"a.lua", "local a = 1\nreturn a -- as ever\n", "a.lua:2"},
		"in code of a script":       {"a.lua", "return 'as ever'\n", ""},
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
