package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-instances 0":         "-instances: 0",
		"-instances 65":        "-instances: 65",
		"-instances many":      "-instances",
		"-callers 0":           "-callers: 0",
		"-callers -1":          "-callers: -1",
		"-ttl 99ms":            "-ttl: 99ms",
		"-ttl -1s":             "-ttl: -1s",
		"-query 0":             "-query: 0s",
		"-query 11s":           "-query: 11s",
		"-duration 0":          "-duration: 0s",
		"-duration 580ms":      "-duration: 580ms",
		"-short -duration 1ms": "-duration: 1ms",
		"-fast":                "-fast",
		"quickly":              `"quickly"`,
	} {
		var problems strings.Builder
		if code := compared().Execute(t.Context(), strings.Fields(args), io.Discard, &problems); code != program.Usage {
			t.Errorf("%q: exit code %d, want %d", args, code, program.Usage)
		}
		if !strings.Contains(problems.String(), want) {
			t.Errorf("%q: it says %q, want %q in it", args, problems.String(), want)
		}
	}
}

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

// nobody opens no shop.
func nobody(*redis.Client, *database, string, time.Duration) (shop, error) {
	return nil, errors.New("opened after the interrupt")
}

// onWrite is a writer that calls itself.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	if code := compared(contestant{Name: "none", Open: nobody}).Execute(ctx, nil, onWrite(interrupt), io.Discard); code != program.Interrupted {
		t.Errorf("exit code %d, want %d", code, program.Interrupted)
	}
}
