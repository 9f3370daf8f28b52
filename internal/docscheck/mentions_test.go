package main

import "testing"

func TestMentions(t *testing.T) {
	tests := map[string]string{
		"see `docs/guide.md`, `docs/` and `docs/deep/`": "",
		"see `docs/gone.md`":                            "README.md:1: the repository has no docs/gone.md",
		"`either/or`, `GET/SET`, `docs/*.md`":           "",
		"docs/gone.md":                                  "",
		"```\n`docs/gone.md`\n```":                      "",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			expect(t, checkMentions, files(map[string]string{"README.md": text, "docs/guide.md": "", "docs/deep/page.md": ""}), want)
		})
	}
}
