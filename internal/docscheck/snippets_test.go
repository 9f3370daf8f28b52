package main

import "testing"

const exampleFile = `package shop_test

func ExampleGet() {
	if ready {
		fmt.Println("first: 1") // not the Output: of it
	}

	done()
	// Output:
	// first: 1
}

func ExampleTwice() {
	after()
	first()
	after()
	second()
}
`

const programFile = "package main\n\nfunc main() {}\n"

const copied = "\n\n```go\nif ready {\n    fmt.Println(\"first: 1\") // not the Output: of it\n}\n\ndone()\n```\n"

func TestSnippets(t *testing.T) {
	const tied = "<!-- example: shop/ExampleGet -->\n"
	const tiedPart = "<!-- example: shop/ExampleGet, a part -->\n"
	tests := map[string]struct{ file, text, want string }{
		"a copy but for the indentation": {"README.md", tied + copied, ""},
		"a copy in a list": {"docs/use.md", tied + "  ```go\n  if ready {\n" +
			"  \tfmt.Println(\"first: 1\") // not the Output: of it\n  }\n\n  done()\n  ```", ""},
		"a change": {"docs/use.md", tied + "```go\nif ready {\n\tother()\n```",
			"use.md:2: differs from shop/ExampleGet in line 2"},
		"too short":                              {"README.md", tied + "```go\nif ready {\n```", "here it has ended"},
		"a part":                                 {"README.md", tiedPart + "```go\n}\n\ndone()\n```", ""},
		"a part with a gap":                      {"README.md", tiedPart + "```go\nif ready {\n\ndone()\n```", "in line 2"},
		"no part":                                {"README.md", tiedPart + "```go\nother()\n```", "in line 1"},
		"no such example":                        {"README.md", "<!-- example: shop/ExamplePut -->" + copied, "no example shop/ExamplePut"},
		"no such directory":                      {"README.md", "<!-- example: shed/ExampleGet -->" + copied, "no example shed/ExampleGet"},
		"a part that begins like an earlier one": {"README.md", "<!-- example: shop/ExampleTwice, a part -->\n```go\nafter()\nsecond()\n```", ""},
		"a file":                                 {"docs/use.md", "<!-- file: shop/main.go -->\n```go\npackage main\n\nfunc main() {}\n```", ""},
		"a part of a file":                       {"docs/use.md", "<!-- file: shop/main.go, a part -->\n```go\nfunc main() {}\n```", ""},
		"another file":                           {"docs/use.md", "<!-- file: shop/main.go -->\n```go\npackage other\n```", "differs from shop/main.go"},
		"no such file":                           {"docs/use.md", "<!-- file: shop/gone.go -->\n```go\npackage main\n```", "no file shop/gone.go"},
		"untied in the README":                   {"README.md", "Some text." + copied, "not tied"},
		"untied in a guide":                      {"docs/use.md", "Some text." + copied, "not tied"},
		"untied on purpose":                      {"README.md", "<!-- example: none -->" + copied, ""},
		"untied elsewhere":                       {"bench/README.md", "Some text." + copied, ""},
		"other languages":                        {"README.md", "```sh\nmake test\n```", ""},
		"text after the comment":                 {"bench/use.md", tied + "\nText.\n" + copied, "has no block"},
		"a comment in a block":                   {"README.md", "```markdown\n" + tied + "```", ""},
		"a malformed comment":                    {"bench/use.md", "<!-- example shop/ExampleGet -->" + copied, "malformed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			repository := files(map[string]string{test.file: test.text, "shop/shop_test.go": exampleFile, "shop/main.go": programFile})
			expect(t, checkSnippets, repository, test.want)
		})
	}
}
