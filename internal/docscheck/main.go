// Command docscheck finds what rots in documentation: Go code in Markdown that is no longer the Example it was copied
// from, links and paths that lead nowhere, identifiers that only tests have, packages without a comment, paths of the machine somebody
// wrote on, turns of phrase that were swept out (words.go), and figures that were measured once (figures.go).
//
// It checks the files of the repository in the current directory, prints one line per problem, and exits with 1 when
// there is one. Code in Markdown is tied to an Example by a comment before its fence, which names the directory and the
// function:
//
//	<!-- example: cacheguard/ExampleGet -->
//
// The code must equal the body of the function, but for the indentation and the Output comment, or lines of it that follow
// each other if the comment says "DIR/ExampleName, a part". A comment may also name a file: `<!-- file: PATH, a part -->`.
// Each Go block of the top README.md and of the pages in docs needs such a comment; `<!-- example: none -->` says that a
// block is copied from nowhere.
package main

import (
	"context"
	"fmt"
	"os"
)

// A problem is a place in a file and what is wrong there.
type problem struct {
	file string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text) }

var checks = []func(tree) ([]problem, error){checkSnippets, checkLinks, checkMentions, checkIdentifiers, checkPackageComments,
	checkPaths, checkTests, checkPatience, checkWords, checkFigures}

func main() {
	found, err := run(context.Background(), ".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "docscheck:", err)
		os.Exit(2)
	}
	for _, p := range found {
		fmt.Println(p)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// run applies every check to the repository in dir.
func run(ctx context.Context, dir string) ([]problem, error) {
	t, err := openTree(ctx, dir)
	if err != nil {
		return nil, err
	}
	var found []problem
	for _, check := range checks {
		p, err := check(t)
		if err != nil {
			return nil, err
		}
		found = append(found, p...)
	}
	return found, nil
}
