package memory

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// serve lets other processes use an engine, and returns its address.
func serve(t *testing.T, cfg Config) string {
	t.Helper()
	client, e, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { // ends when the listener is closed; joined below
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			inside := newConn(e)
			all.Go(func() { // ends when the other side does; joined below
				_, _ = io.Copy(inside, outside) // as above
				_ = inside.Close()              // so the other ends
			})
			all.Go(func() { // ends when the engine does, or the other side; joined below
				_, _ = io.Copy(outside, inside) // as above
				_ = outside.Close()             // so the other ends
			})
		}
	})
	t.Cleanup(func() {
		expect.Equal(t, "closed", errors.Join(listener.Close(), client.Close()), nil)
		all.Wait()
	})
	return listener.Addr().String()
}

func init() { // what these tests ask beside
	plain["HKEYS"] = command{2, func(r *run, args []string) any {
		keys := []any{}
		for _, p := range r.fields(args[0]) {
			keys = append(keys, p.field)
		}
		return keys
	}}
	plain["KEYS"] = command{2, func(r *run, args []string) any {
		keys := []any{}
		for key := range r.keys.items {
			if is, _ := path.Match(args[0], key); is {
				keys = append(keys, key)
			}
		}
		return keys
	}}
	plain["SCRIPT"] = command{2, func(r *run, _ []string) any { // FLUSH
		clear(r.engine.scripts)
		return "OK"
	}}
}

// The tests are in package cacheguard, whose module does without this one.
func TestPromisesHoldInMemory(t *testing.T) {
	t.Parallel()
	here := serve(t, Config{MaxBytes: 256 << 20})
	behind := serve(t, Config{MaxBytes: 256 << 20, Now: func() time.Time { return time.Now().Add(-48 * time.Hour) }})
	const tests = "^(TestPromises|TestSelfCheckSucceedsOnOtherKindsOfRedis|TestAClockThatIsWrongDoesNotMakeEntriesStale)$/^(miniredis)?$"
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-vet=off", "-run", tests, ".")
	if program := os.Getenv("CACHEGUARD_TEST_PROGRAM"); program != "" { // make test has linked it already
		cmd = exec.CommandContext(t.Context(), program, "-test.count=1", "-test.v", "-test.timeout=10m", "-test.run="+tests)
	}
	cmd.Dir = "../cacheguard"
	cmd.Env = append(os.Environ(), "CACHEGUARD_TEST_MINIREDIS="+here, "CACHEGUARD_TEST_BEHIND="+behind)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, ran := range []string{"TestPromises/miniredis", "TestSelfCheckSucceedsOnOtherKindsOfRedis/miniredis", "TestAClockThatIsWrongDoesNotMakeEntriesStale"} {
		if !strings.Contains(string(text), "--- PASS: "+ran+" ") {
			t.Errorf("%s was not run:\n%s", ran, text)
		}
	}
}
