package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/report"
	"github.com/cacheguard/go/bench/internal/server"
)

// about says where and how the report is made. It leaves out what it cannot find out.
func about(ctx context.Context, redis *server.Server, o options, args []string) report.About {
	version, _ := redis.Version(ctx)
	return report.About{
		Began:   time.Now(),
		Command: strings.TrimSpace("go run ./bench/cmd/compare " + strings.Join(args, " ")),
		Commit:  commit(ctx),
		Machine: machine(),
		Go:      runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis:   version,
		Rounds:  o.rounds,
		Each:    o.each,
	}
}

func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(changes) > 0 {
		name += " with changes"
	}
	return name
}

func machine() string {
	name := runtime.GOARCH
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range bytes.Lines(text) {
			if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%d processors (%s)", runtime.GOMAXPROCS(0), name)
}
