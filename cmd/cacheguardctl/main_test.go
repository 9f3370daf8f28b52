package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// asCommand makes the test binary act as the command.
const asCommand = "CACHEGUARDCTL_TEST_COMMAND"

var shared *redistest.Server

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	redistest.Main(m, &shared)
}

// ran is how a run of the command ended.
type ran struct {
	code        int
	out, errors string
}

func command(ctx context.Context, url string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	if strings.Contains(url, "://") && !strings.Contains(url, "timeout") { // a machine may be busy, and a handshake take seconds
		url += map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "dial_timeout=1m"
	}
	cmd.Env = append(os.Environ(), asCommand+"=1", "REDIS_URL="+url)
	return cmd
}

// ctl runs the command in a process of its own.
func ctl(t *testing.T, url string, args ...string) ran {
	t.Helper()
	return ctlIn(t, nil, url, args...)
}

// ctlIn is ctl with more variables of the environment.
func ctlIn(t *testing.T, env []string, url string, args ...string) ran {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := command(t.Context(), url, args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), problems.String()}
}

// want reports a run that ended otherwise.
func (r ran) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.out+r.errors, part) {
			t.Errorf("no %q in the output", part)
		}
	}
	if r.code != code || t.Failed() {
		t.Errorf("exit code %d, want %d; output:\n%s\nerrors:\n%s", r.code, code, r.out, r.errors)
	}
}

// fields are the names of the fields of an object, with those of objects in its first list as NAME.FIELD.
func fields(t *testing.T, object string) (names []string) {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	for name, value := range all {
		names = append(names, name)
		if list, ok := value.([]any); ok && len(list) > 0 {
			if first, ok := list[0].(map[string]any); ok {
				for field := range first {
					names = append(names, name+"."+field)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func at(s *redistest.Server) string { return "redis://" + s.Addr() }
