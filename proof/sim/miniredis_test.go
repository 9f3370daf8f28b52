package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// The tests are in package cacheguard, whose module does without miniredis.
func TestPromisesHoldOnMiniredis(t *testing.T) {
	t.Parallel()
	server, behind := miniredis.RunT(t), miniredis.RunT(t)
	server.ClockTTL(true)
	behind.SetTime(time.Now().Add(-48 * time.Hour))
	const tests = "^(TestPromises|TestSelfCheckSucceedsOnOtherKindsOfRedis|TestAClockThatIsWrongDoesNotMakeEntriesStale)$/^(miniredis)?$"
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-vet=off", "-run", tests, ".")
	if program := os.Getenv("CACHEGUARD_TEST_PROGRAM"); program != "" { // make test has linked it already
		cmd = exec.CommandContext(t.Context(), program, "-test.count=1", "-test.v", "-test.timeout=10m", "-test.run="+tests)
	}
	cmd.Dir = "../../cacheguard"
	cmd.Env = append(os.Environ(), "CACHEGUARD_TEST_MINIREDIS="+server.Addr(), "CACHEGUARD_TEST_BEHIND="+behind.Addr())
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
