package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestACheckWhosePreconditionFailsHasNotPassed(t *testing.T) {
	checks := []check{
		{ID: "base", Kind: "check"},
		{ID: "a", Kind: required, DependsOn: []string{"base"}},
		{ID: "b", Kind: required},
		{ID: "c", Kind: optimal, DependsOn: []string{"b"}},
		{ID: "d", Kind: optimal, DependsOn: []string{"c"}},
		{ID: "browsers", Kind: required, BrowserOnly: true},
		{ID: "absent", Kind: optimal},
	}
	s, err := score(checks, map[string]json.RawMessage{
		"base": json.RawMessage(`["Assertion","no"]`), "a": json.RawMessage(`true`), "b": json.RawMessage(`true`),
		"c": json.RawMessage(`["Setup","retry"]`), "d": json.RawMessage(`true`), "browsers": json.RawMessage(`false`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.required != (share{1, 2}) || s.optimal != (share{0, 3}) {
		t.Errorf("required %v, optimal %v", s.required, s.optimal)
	}
	for i, want := range []string{"depends on base", "Setup: retry", "depends on c", "was not run"} {
		if got := s.missed[i].what; got != want {
			t.Errorf("%s: %q, want %q", s.missed[i].id, got, want)
		}
	}
}

func TestTheReportNamesEachCheckThatDidNotPassWithItsReason(t *testing.T) {
	page := report("of today", scores{
		required: share{1, 2}, optimal: share{3, 4},
		missed: []miss{{required, "new-check", "does | this", "Assertion: no"}, {optimal, "method-POST", "stores", "x"}},
	}, scores{
		required: share{5, 6}, optimal: share{7, 8},
		missed: []miss{{optimal, "method-POST", "stores", "x"}, {optimal, "heuristic-1", "reuses", "x"}, {optimal, "heuristic-2", "reuses", "y"}, {required, "heuristic-3", "reuses", "x"}},
	})
	for _, want := range []string{"of today", "| `new-check` | required | does \\| this: Assertion: no |", "| **1** | **3** |", "| `method-POST` | optimal | Responses to POST", "| with the zero Config | 5 | 7 |", "| `heuristic-1`, `heuristic-2` | optimal | Off by default", "| `heuristic-3` | required | Off by default"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q:\n%s", want, page)
		}
	}
}
