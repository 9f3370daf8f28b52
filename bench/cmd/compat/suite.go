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
type suite struct{ name, folder, tests, skip string }

// miniredis is no server of these.
var suites = []suite{
	{"promises of a Guard", "cacheguard", "^TestPromises$|^TestTheUserOfTheDocumentationCanBePasted$|^TestSelfCheckNamesTheServer$", "/miniredis"},
	{"local tier", "cacheguard", "^Test.*(Tier|Local)", ""},
	{"TLS", "cacheguard", "^TestAGuardWorksOverTLS$", ""},
	{"behind twemproxy", "cacheguard", "Twemproxy", ""},
	{"mutex", "mutex", "^Test", ""},
	{"rwlock", "rwlock", "^Test", ""},
	{"semaphore", "semaphore", "^Test", ""},
	{"failover", "cacheguard", "^TestAFailover", ""},
}

// The kinds of a deployment, by the words in names of tests.
const (
	single = iota
	sentinel
	cluster
	ring
	kinds
)

var kindWords = map[int]*regexp.Regexp{sentinel: regexp.MustCompile(`(?i)sentinel`), cluster: regexp.MustCompile(`(?i)cluster`), ring: regexp.MustCompile(`(?i)/ring`)}

// kindOf is where a test ran.
func kindOf(test string) int {
	for kind, word := range kindWords {
		if word.MatchString(test) {
			return kind
		}
	}
	return single
}

// counts are those of a suite.
type counts struct {
	passed  [kinds]int
	failed  []string
	skipped []string
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed[single]+c.passed[sentinel]+c.passed[cluster]+c.passed[ring], len(c.failed), len(c.skipped))
}

var outcome = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// run runs the suite on a server, and shows what failed.
func (s suite) run(ctx context.Context, dir string, on server) (counts, error) {
	cmd := exec.CommandContext(ctx, s.binary(dir), "-test.v", "-test.parallel=4", "-test.timeout=10m", "-test.run="+s.tests, "-test.skip="+s.skip)
	cmd.Dir = s.folder
	program, err := filepath.Abs(on.program)
	if err != nil {
		return counts{}, err
	}
	cmd.Env = append(os.Environ(), "REDISTEST_SERVER="+program)
	text, err := cmd.CombinedOutput()
	c := read(text)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return c, err
	}
	if err != nil {
		_, _ = os.Stderr.Write(text) // for whoever reads on
		if len(c.failed) == 0 {
			c.failed = []string{s.name + " ended: " + err.Error()}
		}
	}
	return c, nil
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
		case result == "FAIL":
			c.failed = append(c.failed, name)
		case parents[name]:
		case result == "SKIP":
			c.skipped = append(c.skipped, name)
		default:
			c.passed[kindOf(name)]++
		}
	}
	return c
}
