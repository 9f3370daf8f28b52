package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// It uses the real Redis that REDIS_URL names, if it does.
func TestEachExpiryCostsManyQueriesByHandAndOneWithTheGuard(t *testing.T) {
	var out, problems strings.Builder
	args := strings.Fields("-instances 3 -callers 5 -duration 1500ms -ttl 150ms -query 100ms")
	if code := newProgram().Execute(t.Context(), args, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
	row := regexp.MustCompile(`queries per expiry +(\S+) +(\S+) +(\S+)`).FindStringSubmatch(out.String())
	if row == nil {
		t.Fatalf("the output has no queries per expiry:\n%s", out.String())
	}
	var each [3]float64
	for i, cell := range row[1:] {
		each[i], _ = strconv.ParseFloat(cell, 64) // 0: it fails below
	}
	if each[0] <= each[1] || each[1] <= 1 || each[2] != 1 {
		t.Errorf("queries per expiry: %v by hand, %v with a singleflight in each of 3 instances, %v with cacheguard", each[0], each[1], each[2])
	}
}
