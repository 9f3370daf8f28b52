package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// suite is some tests of a package.
type suite struct{ name, folder, tests string }

var suites = []suite{
	{"promises of a Guard", "cacheguard", "^TestPromises$|^TestTheUserOfTheDocumentationCanBePasted$|^TestSelfCheckNamesTheServer$|^TestServerless[^T]"},
	{"local tier", "cacheguard", "^Test.*(Tier|Local)"},
	{"TLS", "cacheguard", "^TestAGuardWorksOverTLS$"},
	{"behind twemproxy", "cacheguard", "Twemproxy"},
	{"mutex", "mutex", "^Test"},
	{"rwlock", "rwlock", "^Test"},
	{"semaphore", "semaphore", "^Test"},
	{"failover", "cacheguard", "^TestAFailover"},
}

// The kinds of a deployment, by the words in names of tests.
const (
	single = iota
	sentinel
	cluster
	serverless // a server of the kind, behind a proxy with the rules of serverless offerings
	kinds
)

var kindWords = map[int]*regexp.Regexp{sentinel: regexp.MustCompile(`(?i)sentinel`), cluster: regexp.MustCompile(`(?i)cluster`), serverless: regexp.MustCompile(`(?i)serverless`)}

// kindOf is where a test ran.
func kindOf(test string) int {
	for kind, word := range kindWords {
		if word.MatchString(test) {
			return kind
		}
	}
	return single
}

// counts are the results of a suite.
type counts struct {
	passed  [kinds]int
	failed  []string
	skipped []string
	again   int // passed, and had failed at first
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped, %d only when they ran again", c.passed[single]+c.passed[sentinel]+c.passed[cluster]+c.passed[serverless], len(c.failed), len(c.skipped), c.again)
}

var outcome = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// attempts is how often a test may run, the later times alone: a machine that stands still for a moment makes tests late.
const attempts = 4

// run runs the suite on a server, and shows what failed.
func (s suite) run(ctx context.Context, dir string, on server) (counts, error) {
	c, text, err := s.once(ctx, dir, on, s.tests, 2)
	if err != nil {
		return c, err
	}
	var failed []string
	for _, name := range c.failed {
		passed := false
		for i := 1; i < attempts && !passed; i++ {
			again, told, err := s.once(ctx, dir, on, only(name), 1)
			if err != nil {
				return c, err
			}
			passed = len(again.failed) == 0
			text = told
		}
		if !passed {
			failed = append(failed, name)
			_, _ = os.Stderr.Write(text) // for the reader of the log
			continue
		}
		c.passed[kindOf(name)]++
		c.again++
	}
	c.failed = failed
	return c, nil
}

// only is the pattern of one test.
func only(name string) string {
	words := strings.Split(name, "/")
	for i, word := range words {
		words[i] = "^" + regexp.QuoteMeta(word) + "$"
	}
	return strings.Join(words, "/")
}

// once runs tests, and returns what they wrote.
func (s suite) once(ctx context.Context, dir string, on server, tests string, parallel int) (counts, []byte, error) {
	cmd := exec.CommandContext(ctx, s.binary(dir), "-test.v", fmt.Sprint("-test.parallel=", parallel), "-test.timeout=10m", "-test.run="+tests)
	cmd.Dir = s.folder
	program, err := filepath.Abs(on.program)
	if err != nil {
		return counts{}, nil, err
	}
	cmd.Env = append(os.Environ(), "REDISTEST_SERVER="+program)
	text, err := cmd.CombinedOutput()
	c := read(text)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return c, text, err
	}
	if err != nil && len(c.failed) == 0 {
		_, _ = os.Stderr.Write(text) // for the reader of the log
		return c, text, fmt.Errorf("%s on %s: %w", s.name, on.version, err)
	}
	return c, text, nil
}

// read counts the tests that have no others within them.
func read(text []byte) (c counts) {
	results := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := outcome.FindStringSubmatch(lines.Text()); m != nil {
			results[m[2]] = m[1]
		}
	}
	parents := make(map[string]bool)
	for name := range results {
		for i := strings.LastIndex(name, "/"); i > 0; i = strings.LastIndex(name[:i], "/") {
			parents[name[:i]] = true
		}
	}
	for name, result := range results {
		switch {
		case parents[name]: // its tests say it
		case result == "FAIL":
			c.failed = append(c.failed, name)
		case result == "SKIP":
			c.skipped = append(c.skipped, name)
		default:
			c.passed[kindOf(name)]++
		}
	}
	return c
}
