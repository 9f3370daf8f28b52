// Summary reads what go test -json says, and says it on a screen: the output of what failed and nothing of the rest, and at the end the
// counts, the seconds and what was slowest. It fails when a test or a package did, when none ran, and when a line that is no JSON, or an
// action "broken", says that go test did not get to its end.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// event is one of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// place is a test, or a package if Test is empty.
type place struct{ Package, Test string }

type slow struct {
	place
	seconds float64
}

type summary struct {
	out     io.Writer
	live    bool // out is a terminal
	output  map[place][]string
	running map[string]bool // packages
	tests   map[string]int  // by their last action
	done    int             // packages
	slow    []slow          // tests without a parent
	broken  bool
	failed  map[string]bool // packages with a test that failed
	untold  string          // what was said of failures that no test's name stands for: the end has it again, as the middle of a long log is often cut
}

const slowest = 5

func main() {
	info, err := os.Stdout.Stat()
	began := time.Now()
	s := &summary{
		out: os.Stdout, live: err == nil && info.Mode()&os.ModeCharDevice != 0,
		output: make(map[place][]string), running: make(map[string]bool), tests: make(map[string]int), failed: make(map[string]bool),
	}
	if err := s.read(os.Stdin); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
	if !s.close(time.Since(began)) {
		os.Exit(1)
	}
}

func (s *summary) read(in io.Reader) error {
	lines := bufio.NewReader(in) // a line may be longer than a Scanner takes
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (s *summary) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		s.broken = true
		s.sayAgain(line)
		return
	}
	at := place{e.Package, e.Test}
	switch e.Action {
	case "start":
		s.running[e.Package] = true
	case "build-output":
		s.sayAgain(e.Output)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT
			s.output[at] = append(s.output[at], e.Output)
		}
	case "build-fail", "broken":
		s.broken = true
	case "pass", "fail", "skip":
		s.ended(at, e)
	}
}

func (s *summary) ended(at place, e event) {
	if e.Action == "fail" {
		s.say(strings.Join(s.output[at], ""))
	}
	if e.Action == "fail" && e.Test == "" {
		s.broken = true
		s.sayUnended(at.Package)
		if !s.failed[at.Package] {
			s.untold += strings.Join(s.output[at], "")
		}
	}
	delete(s.output, at)
	if e.Test != "" {
		s.tests[e.Action]++
		if !strings.Contains(e.Test, "/") {
			if e.Action == "fail" {
				s.failed[at.Package] = true
			}
			s.slow = append(s.slow, slow{at, e.Elapsed})
			slices.SortFunc(s.slow, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
			s.slow = s.slow[:min(len(s.slow), slowest)]
		}
		return
	}
	s.done++
	delete(s.running, e.Package)
	if s.live {
		_, _ = fmt.Fprintf(s.out, "\r%3d packages, %5d tests", s.done, s.tests["pass"])
	}
}

// sayUnended says what tests said that ran when their package failed: a panic, as of a time-out, with all goroutines, of
// which the end has the beginning.
func (s *summary) sayUnended(failed string) {
	for at, lines := range s.output {
		if at.Package == failed && at.Test != "" {
			const enough = 3000
			said := at.Test + " did not end\n" + strings.Join(lines, "")
			s.say(said)
			s.untold += said[:min(len(said), enough)] + "\n"
			delete(s.output, at)
		}
	}
}

func (s *summary) sayAgain(text string) {
	s.say(text)
	s.untold += text
}

func (s *summary) say(text string) {
	if s.live && text != "" {
		text = "\r" + text
	}
	_, _ = io.WriteString(s.out, text)
}

// close says what came of all, and reports whether all is well.
func (s *summary) close(took time.Duration) bool {
	for name := range s.running {
		s.broken = true
		s.sayAgain(name + " did not end\n")
	}
	_, _ = fmt.Fprintf(s.out, "\n%d packages in %.0f s; the slowest tests:\n", s.done, took.Seconds())
	for _, t := range s.slow {
		_, _ = fmt.Fprintf(s.out, "%7.1f s  %s  %s\n", t.seconds, t.Package[strings.LastIndex(t.Package, "/")+1:], t.Test)
	}
	_, _ = fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.tests["pass"], s.tests["fail"], s.tests["skip"])
	if s.broken && s.tests["fail"] == 0 {
		const enough = 4000
		_, _ = fmt.Fprintln(s.out, "FAILED: not by a test, but by what is said above, which ends with\n"+s.untold[max(0, len(s.untold)-enough):])
	}
	return !s.broken && s.tests["fail"] == 0 && s.tests["pass"] > 0
}
