package main

import (
	"strings"
	"testing"
	"time"
)

func TestServersWithTheSameResultsShareATable(t *testing.T) {
	on := func(version string, first counts) tested {
		all := make([]counts, len(suites))
		all[0] = first
		return tested{server{pack: "a package", version: version}, all}
	}
	same := counts{passed: [kinds]int{single: 3, cluster: 2}, again: 1}
	text := page([]tested{
		on("redis 7", same), on("redis 8", counts{passed: [kinds]int{single: 3}, failed: []string{"TestB", "TestA"}}), on("valkey 8", same), on("other", counts{skipped: []string{"TestA"}}),
	}, "- one", time.Now())
	row := "| " + suites[0].name
	for _, want := range []string{
		"; 2 of all did.", "\n- redis 7 (a package)\n- valkey 8 (a package)\n\n", row + " | 3 |  | 2 |  |\n", "\n- redis 8 (a package)\n\n",
		row + ", **failed: TestA, TestB** | 3 |  |  |  |\n", row + ", skipped |  |  |  |  |\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the page does not say %q once:\n%s", want, text)
		}
	}
}
