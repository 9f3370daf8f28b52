// Quickstart lets a crowd of callers hammer one product whose cache entry keeps expiring, with three caches one after
// another: GET and SET by hand, the same behind a singleflight in each instance, and cacheguard. It compares the load on
// the database. The three caches are in internal/crowd/main.go.
//
// It needs nothing but Go. REDIS_URL names a real Redis to use instead of the embedded one.
// A service without a Redis takes memory.New(memory.Config{MaxBytes: 64 << 20}) of module memory for its client: the same
// calls, and the same promises within its process.
//
// This program only compiles and runs the other, because go run says nothing while it compiles, and the first time that takes
// a minute. It imports the standard library alone, so it is there within seconds.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const crowd = "github.com/cacheguard/go/examples/quickstart/internal/crowd"

func main() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // Ctrl-C reaches the other program, too, which tidies up
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code, err := start(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "quickstart: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// start compiles and runs the program, and returns its exit code. An error says why there is none.
func start(ctx context.Context, args []string) (code int, err error) {
	folder, err := os.MkdirTemp("", "cacheguard-quickstart-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	binary := filepath.Join(folder, "quickstart.exe") // the ending matters to Windows alone

	if err := build(ctx, binary); err != nil {
		return 0, err
	}
	run := exec.CommandContext(ctx, binary, args...)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	err = run.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		return max(ended.ExitCode(), 1), nil // it said why
	}
	return 0, err
}

// build compiles the program, and shows how far that is. What takes the compiler half of its time is left out: inlining outside of the
// standard library, what debuggers need, and collecting garbage often.
func build(ctx context.Context, binary string) error {
	compile := exec.CommandContext(ctx, "go", "build", "-v", "-gcflags=all=-l -dwarf=false", "-gcflags=std=", "-ldflags=-w", "-o", binary, crowd)
	compile.Env = append(os.Environ(), "GOGC=400")
	said, err := compile.StderrPipe()
	if err != nil {
		return err
	}
	if err := compile.Start(); err != nil {
		return err
	}
	info, err := os.Stdout.Stat()
	every := 10 * time.Second
	if err == nil && info.Mode()&os.ModeCharDevice != 0 {
		every = 0 // a line that changes
	}
	problems := follow(said, os.Stdout, every)
	if err := compile.Wait(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, problems)
	}
	return nil
}

// follow shows what go build -v says: a package, on a line, when it begins to compile it. It returns what else is said. With every
// 0 it writes one line again and again, otherwise a line in so much time.
func follow(said io.Reader, out io.Writer, every time.Duration) (problems string) {
	began, packages := time.Now(), 0
	shown := began
	for lines := bufio.NewScanner(said); lines.Scan(); {
		line := lines.Text()
		if strings.ContainsAny(line, " :#") {
			problems += line + "\n"
			continue
		}
		if packages++; packages == 1 {
			_, _ = fmt.Fprintln(out, "Compiling cacheguard, go-redis, an embedded Redis and a small database. It takes about a minute, this once.")
		}
		if every == 0 || time.Since(shown) >= every {
			shown = time.Now()
			progress := fmt.Sprintf("  %3d packages, now %s", packages, line)
			if every == 0 {
				progress = fmt.Sprintf("\r%-78.78s", progress)
			} else {
				progress += "\n"
			}
			_, _ = io.WriteString(out, progress)
		}
	}
	if packages > 0 {
		end := "\n\n"
		if every == 0 {
			end = fmt.Sprintf("%62s", "") + end // over what is left of a longer line
			_, _ = io.WriteString(out, "\r")
		}
		_, _ = fmt.Fprintf(out, "  %3d packages in %.0f s%s", packages, time.Since(began).Seconds(), end)
	}
	return problems
}
