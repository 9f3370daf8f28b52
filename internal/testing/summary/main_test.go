package main

import (
	"strings"
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	const passing = `{"Action":"start","Package":"a/b"}
{"Action":"output","Package":"a/b","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"a/b","Test":"TestGood/part","Elapsed":9}
{"Action":"pass","Package":"a/b","Test":"TestGood","Elapsed":2.5}
{"Action":"skip","Package":"a/b","Test":"TestNot","Elapsed":0}
`
	const end = `{"Action":"pass","Package":"a/b","Elapsed":3}` + "\n"
	for _, c := range []struct {
		name, in string
		well     bool
		want     []string // parts of the output
		without  string
	}{
		{"all is well", passing + end, true, []string{"1 packages in 7 s", "    2.5 s  b  TestGood\n", "\n2 passed, 0 failed, 1 skipped\n"}, "chatter"},
		{"a test failed", passing + `{"Action":"output","Package":"a/b","Test":"TestBad","Output":"=== RUN   TestBad, chatter\n"}
{"Action":"output","Package":"a/b","Test":"TestBad","Output":"why\n"}
{"Action":"fail","Package":"a/b","Test":"TestBad"}
{"Action":"fail","Package":"a/b"}
`, false, []string{"why\n", "2 passed, 1 failed, 1 skipped"}, "chatter"},
		{"a process died", passing + `{"Action":"output","Package":"a/b","Output":"panic: x\n"}
{"Action":"fail","Package":"a/b"}
`, false, []string{"panic: x\n\n1 packages", "2 passed, 0 failed", "FAILED: not by a test", "ends with\npanic: x\n"}, "chatter"},
		{"a process died in a test", passing + `{"Action":"output","Package":"a/b","Test":"TestLong","Output":"panic: late\n"}
{"Action":"output","Package":"a/b","Output":"FAIL a/b\n"}
{"Action":"output","Package":"c","Test":"TestOther","Output":"chatter\n"}
{"Action":"fail","Package":"a/b"}
`, false, []string{"2 passed, 0 failed", "ends with\nTestLong did not end\npanic: late\n\nFAIL a/b\n"}, "chatter"},
		{"it does not compile", `{"Action":"build-output","Output":"b.go:1: no\n"}
{"Action":"build-fail"}
` + passing + end, false, []string{"b.go:1: no\n\n1 packages", "FAILED: not by a test", "ends with\nb.go:1: no\n"}, "chatter"},
		{"a package did not end", passing, false, []string{"a/b did not end\n"}, "chatter"},
		{"go test failed", passing + end + `{"Action":"broken"}` + "\n", false, []string{"FAILED: not by a test"}, "chatter"},
		{"no JSON", "flag provided but not defined: -x\n" + passing + end, false, []string{"-x\n", "FAILED: not by a test"}, "chatter"},
		{"no tests", `{"Action":"start","Package":"a"}` + "\n" + `{"Action":"skip","Package":"a"}`, false, []string{"0 passed"}, "chatter"},
	} {
		var out strings.Builder
		s := &summary{out: &out, output: make(map[place][]string), running: make(map[string]bool), tests: make(map[string]int), failed: make(map[string]bool)}
		if err := s.read(strings.NewReader(c.in)); err != nil {
			t.Fatal(err)
		}
		if well := s.close(7 * time.Second); well != c.well {
			t.Errorf("%s: well is %t:\n%s", c.name, well, out.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, out.String())
			}
		}
		if strings.Contains(out.String(), c.without) {
			t.Errorf("%s: %q in\n%s", c.name, c.without, out.String())
		}
	}
}

func TestOnlyTheSlowestFiveAreNamed(t *testing.T) {
	t.Parallel()
	var in, out strings.Builder
	for _, name := range strings.Split("abcdefg", "") {
		in.WriteString(`{"Action":"pass","Package":"p","Test":"Test` + name + `","Elapsed":` + map[bool]string{true: "9", false: "1"}[name == "g"] + "}\n")
	}
	s := &summary{out: &out, output: make(map[place][]string), running: make(map[string]bool), tests: make(map[string]int), failed: make(map[string]bool)}
	if err := s.read(strings.NewReader(in.String())); err != nil {
		t.Fatal(err)
	}
	s.close(0)
	if n := strings.Count(out.String(), " s  p  Test"); n != slowest || !strings.Contains(out.String(), "tests:\n    9.0 s  p  Testg\n") {
		t.Errorf("%d of them:\n%s", n, out.String())
	}
}
