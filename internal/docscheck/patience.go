package main

import (
	"regexp"
	"strings"
)

// hasty matches a time-out or a lease of less than a second. A machine that is busy exceeds it.
var hasty = regexp.MustCompile(`\b(?:RedisTimeout|LeaseTTL)(?:: [^,}]*| = .*)\btime\.(?:Millisecond|Microsecond)\b`)

// checkPatience finds tests whose Redis has milliseconds to answer, or whose leases last as long, without a comment on the line that says why
// they do not fail on a busy machine. Benchmarks and proofs, which have modules of their own, disturb as they see fit, and tests of a Config
// run nothing.
func checkPatience(t tree) ([]problem, error) {
	var found []problem
	for _, file := range t.named("*_test.go") {
		if strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "proof/") || strings.HasSuffix(file, "/config_test.go") {
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(text, "\n") {
			if hasty.MatchString(line) && !strings.Contains(line, "//") {
				found = append(found, problem{file, i + 1, "a busy machine takes longer: use redistest.Patience or Brisk, or say here why it does no harm"})
			}
		}
	}
	return found, nil
}
