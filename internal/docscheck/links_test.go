package main

import "testing"

func TestLinks(t *testing.T) {
	const guide = "# The `Guard` and *its* config, v1.0\n\n## Use\n\n## Use\n\n## See [the rest](../README.md)\n\n" +
		"<a name=\"by-hand\"></a>\n\n```sh\n# not a heading\n```\n"
	tests := map[string]string{
		"[a](docs/guide.md) ![b](docs/guide.md \"title\")": "",
		"[a](docs) and [root](/docs/guide.md)":             "",
		"[a](https://example.com/x.md) [b](mailto:a@b.c)":  "",
		"[`Get`](docs/gone.md)":                            "README.md:1: the link to docs/gone.md",
		"[![badge](gone.svg)](docs/guide.md)":              "gone.svg",
		"[a](../outside.md)":                               "outside.md",
		"[ref]: docs/gone.md":                              "docs/gone.md",
		"<img src=\"docs/gone.png\">":                      "docs/gone.png",
		"`[a](gone.md)` is how a link looks":               "",
		"```\n[a](gone.md)\n```":                           "",
		"[a](docs/guide.md#use) [b](docs/guide.md#use-1)":  "",
		"[a](docs/guide.md#the-guard-and-its-config-v10)":  "",
		"[a](docs/guide.md#see-the-rest)":                  "",
		"[a](docs/guide.md#by-hand)":                       "",
		"[a](docs/guide.md#not-a-heading)":                 "docs/guide.md has no heading #not-a-heading",
		"# Top\n\n[a](#top)":                               "",
		"# Top\n\n[a](#bottom)":                            "README.md:3",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			expect(t, checkLinks, files(map[string]string{"README.md": text, "docs/guide.md": guide}), want)
		})
	}
}
