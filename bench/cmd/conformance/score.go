package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The kinds of checks that count. The third, check, only describes a cache.
const (
	required = "required"
	optimal  = "optimal"
)

// share is how many of how many checks passed.
type share struct{ passed, of int }

func (s share) String() string { return fmt.Sprintf("%d of %d", s.passed, s.of) }

// miss is a check that did not pass.
type miss struct{ kind, id, name, what string }

type scores struct {
	required, optimal share
	missed            []miss
}

// score counts as the suite's own site does: a check whose preconditions fail has not passed.
func score(checks []check, results map[string]json.RawMessage) (scores, error) {
	byID := make(map[string]check, len(checks))
	for _, c := range checks {
		byID[c.ID] = c
	}
	verdicts := make(map[string]string)
	var s scores
	for _, c := range checks {
		total := s.of(c.Kind)
		if total == nil || c.BrowserOnly {
			continue
		}
		what, err := verdict(byID, results, verdicts, c.ID)
		if err != nil {
			return scores{}, err
		}
		total.of++
		if what == "" {
			total.passed++
			continue
		}
		s.missed = append(s.missed, miss{c.Kind, c.ID, c.Name, what})
	}
	return s, nil
}

func (s *scores) of(kind string) *share {
	switch kind {
	case required:
		return &s.required
	case optimal:
		return &s.optimal
	}
	return nil
}

// verdict is what kept a check from passing; empty: it passed.
func verdict(checks map[string]check, results map[string]json.RawMessage, known map[string]string, id string) (string, error) {
	if what, ok := known[id]; ok {
		return what, nil
	}
	c, ok := checks[id]
	if !ok {
		return "", fmt.Errorf("the suite depends on %q, which it does not have", id)
	}
	known[id] = "it depends on itself"
	for _, other := range c.DependsOn {
		what, err := verdict(checks, results, known, other)
		if err != nil {
			return "", err
		}
		if what != "" {
			known[id] = "depends on " + other
			return known[id], nil
		}
	}
	what, err := outcome(results[id])
	if err != nil {
		return "", fmt.Errorf("the result of %s: %w", id, err)
	}
	known[id] = what
	return what, nil
}

// outcome reads a result: true, or the class of a failure and what it says.
func outcome(result json.RawMessage) (string, error) {
	switch string(result) {
	case "true":
		return "", nil
	case "":
		return "was not run", nil
	}
	var failure []string
	if err := json.Unmarshal(result, &failure); err != nil {
		return "", err
	}
	return strings.Join(failure, ": "), nil
}
