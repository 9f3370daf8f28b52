package main

import "testing"

func TestTestsThatAreNamedExist(t *testing.T) {
	tests := map[string]string{
		"`TestHere` and `BenchmarkHere`":                                 "",
		"as `TestGone` has it":                                           "README.md:1: there is no test \"TestGone\"",
		"TestGone, `Testing`, `-run TestGone`":                           "",
		"| a | test |\n|---|---|\n| `x` | `a part`, `TestHere` |":        "",
		"| a | test |\n|---|---|\n| `x` | `another part` |":              "README.md:3: there is no test \"another part\"",
		"| a | test |\n|---|---|\n| `x` | `TestGone` |":                  "README.md:3: there is no test \"TestGone\"",
		"| test | a |\n|---|---|\n| `a part` | `x` |\n\n`y`\n| `z` |":    "",
		"| a | test |\n|---|---|\n| b |\n\n| c | d |\n|---|\n|x|`gone`|": "",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			expect(t, checkTests, files(map[string]string{
				"README.md": text, "a_test.go": "func TestHere(t *testing.T) {}\nfunc BenchmarkHere(b *testing.B) {}\n", "b.go": `x := "a part"`,
			}), want)
		})
	}
}
