package admin

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// What is counted or logged is shown, too. The test draws from the code what there is, so that what is added to one place only fails.
func TestEachEventIsShownOfItsCacheOrSomewhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"rejected": "a load that is overtaken is no fault", "uncompressed": "of the Guard",
		"refresh_failed": "Stats.FailedRefreshes", "gated": "answers that are bypassed",
		"overtaken": "a load that is overtaken is no fault", "panicked": "a load that failed", "slow_load": "among the loads", "still_runs": "among the loads",
		"waits": "of the instance that writes", "closing": "of the Guard", "stepped": "of the Guard", "dropped": "of the Guard", "forgotten": "of the Guard", "observer": "of the program",
	}
	source, err := os.ReadFile("../cacheguard/observer.go")
	expect.ErrorIs(t, err)
	_, logged, _ := strings.Cut(string(source), "EventRejected  ") // the first that has a line of the log, or could have
	events := regexp.MustCompile(`What = "(\w+)"`).FindAllStringSubmatch(logged, -1)
	for _, event := range events {
		what := event[1]
		var v view
		v.Happened("product", what)
		counted := v.read("product") != tallied{}
		if why, is := elsewhere[what]; counted == is {
			t.Errorf("%q: counted of its Cache is %v, and shown elsewhere is %v (%s)", what, counted, is, why)
		}
		delete(elsewhere, what)
	}
	expect.Equal(t, "events that are none", len(elsewhere), 0)
}
