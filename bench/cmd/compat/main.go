// Command compat runs tests of the library on servers, and writes what passed:
//
//	go run ./bench/cmd/compat -out docs/compatibility.md -server 'redis-server 7.0.15 (bookworm)=/usr/bin/redis-server' …
//
// scripts/compat finds or fetches servers, and names them. The exit status is 1 when a test failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// server is one to test on.
type server struct{ pack, program, version string }

func main() {
	var servers []server
	out := flag.String("out", "", "file to write the page to; none: it is not written")
	flag.Func("server", "PACKAGE=PROGRAM, again for each", func(s string) error {
		pack, program, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("no = in it")
		}
		servers = append(servers, server{pack: pack, program: program})
		return nil
	})
	missing := flag.String("missing", "", "what could not be had, in Markdown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, servers, *missing, *out); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers []server, missing, out string) error {
	if len(servers) == 0 {
		return errors.New("no -server")
	}
	dir, err := os.MkdirTemp("", "compat-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for i, s := range suites {
		if slices.ContainsFunc(suites[:i], func(before suite) bool { return before.folder == s.folder }) {
			continue
		}
		fmt.Println("compiling", s.folder)
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags=twemproxy", "-o", s.binary(dir), "./"+s.folder)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", s.folder, err)
		}
	}
	results, err := runAll(ctx, dir, servers)
	if err != nil {
		return err
	}
	if out != "" {
		if err := os.WriteFile(out, []byte(page(results, missing, time.Now())), 0o644); err != nil {
			return err
		}
	}
	return failures(results)
}

// runAll runs the suites on all servers side by side: they mostly wait.
func runAll(ctx context.Context, dir string, servers []server) ([]tested, error) {
	results, errs := make([]tested, len(servers)), make([]error, len(servers))
	var all sync.WaitGroup
	for i, on := range servers {
		all.Go(func() { results[i], errs[i] = runOn(ctx, dir, on) }) // owner: this function; ends with its tests
	}
	all.Wait()
	return results, errors.Join(errs...)
}

func runOn(ctx context.Context, dir string, on server) (t tested, err error) {
	if on.version, err = versionOf(ctx, on.program); err != nil {
		return t, err
	}
	t.server = on
	for _, s := range suites {
		got, err := s.run(ctx, dir, on)
		if err != nil {
			return t, err
		}
		fmt.Printf("%s %s: %v%s\n", on.version, s.name, got, got.trouble())
		t.suites = append(t.suites, got)
	}
	return t, nil
}

var versionWords = regexp.MustCompile(`^(\w+) server v=(\S+)`)

// versionOf is as "redis 7.0.15".
func versionOf(ctx context.Context, program string) (string, error) {
	text, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	m := versionWords.FindStringSubmatch(string(text))
	if m == nil {
		return strings.TrimSpace(string(text)), nil
	}
	return strings.ToLower(m[1]) + " " + m[2], nil
}

func (s suite) binary(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(s.folder, "/", "-")+".test")
}

// rest is what the page says beyond the run.
const rest = `## Go and go-redis

The tests run with both ends: ` + "`" + `make floors` + "`" + ` with Go 1.25 and go-redis 9.19.0, which go.mod asks for, and all others with the newest
(Go 1.26, go-redis 9.23.0). ` + "`" + `consensus/etcd` + "`" + `, for its client, and cacheguardctl, a program, need Go 1.26. A newer go-redis
that your service requires is used. Its [release notes](https://github.com/redis/go-redis/blob/v9.23.0/RELEASE-NOTES.md) since 9.19 mend
subscriptions that end, lose messages or do not come back. Since 9.22 its default time-outs are longer, and 9.23 gives pipelines a pool of
their own.

## Rules of serverless offerings

A [proxy in Go](../internal/testing/redistest/serverless.go) puts these rules before one node that has all slots. What it stands for,
ElastiCache Serverless above all, nobody has run.

| rule | known from |
|---|---|
| one node, by ` + "`" + `CLUSTER SLOTS` + "`" + `; at most 3,999 arguments | [its limits](https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/RedisConfiguration.html) |
| no ` + "`" + `CONFIG` + "`" + `, ` + "`" + `WAIT` + "`" + `, ` + "`" + `MONITOR` + "`" + `, ` + "`" + `PSUBSCRIBE` + "`" + `, little of ` + "`" + `CLIENT` + "`" + `; pub/sub is sharded within | [its commands](https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/SupportedCommands.html) |
| a script needs a key | [its page on Lua](https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/BestPractices.Clients.Redis.LuaScripts.html) |
| a ` + "`" + `PUBLISH` + "`" + ` within a script must be to a channel in the slot of its keys | reports, such as [redisson 6463](https://github.com/redisson/redisson/issues/6463) |
| a script touches the keys that it declares alone | the same, and Dragonfly |

All promises of a Guard hold under them. These things differ:

- The local tier serves nothing, as no script can send an echo. With ` + "`" + `Local.MaxLag` + "`" + ` -1 it does, and ` + "`" + `Local.TTL` + "`" + ` is the bound if the process
  that invalidates dies just then.
- ` + "`" + `Config.Replicas` + "`" + ` is an error, as there is no ` + "`" + `WAIT` + "`" + `.

## Behind twemproxy

A proxy without pub/sub stands for its kind. In front of one server, all promises of a Guard hold; with more than one, nothing is promised.
These things differ:

- Nobody can subscribe. Waiters ask on a timer instead, so a value that another instance loads reaches them some milliseconds later, or
  more. The local tier serves nothing.
- twemproxy ends the connection of a client that sends HELLO, as go-redis does on each new one. The client needs a Dialer whose connections
  answer it with an error (` + "`" + `internal/testing/redistest/twemproxy.go` + "`" + ` has one of 20 lines), ` + "`" + `DisableIdentity` + "`" + `, and no DB.
- ` + "`" + `SelfCheck` + "`" + ` returns an error that ends with "cannot use Redis, at TIME: EOF"; the Guard works nevertheless.
- ` + "`" + `Config.Replicas` + "`" + ` needs WAIT, and the page of package admin cannot send to the fleet.
`
