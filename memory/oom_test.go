package memory

import (
	"math/rand/v2"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestEachCallDoesWhatItDoesInAFullRedis runs some calls while neither has room: a Redis with one byte of memory that evicts nothing, and an engine
// where nothing gives way.
func TestEachCallDoesWhatItDoesInAFullRedis(t *testing.T) {
	t.Parallel()
	b := newBoth(t, redistest.Start(t).Client(t))
	b.fills, b.refused = func() bool { return rand.IntN(3) == 0 }, make(map[string]int)
	for kind := range kinds {
		for _, seed := range seeds(t) {
			if difference := b.walk(t, kind, seed, 200, make(map[string]int)); difference != "" {
				t.Error(difference)
				break
			}
		}
	}
	b.end(t)
	for _, name := range endings {
		expect.Equal(t, name+" is refused", b.refused[name], 0)
	}
	if len(b.refused) < 10 && !t.Failed() {
		t.Errorf("only %v were refused", b.refused)
	}
}

// endings are the scripts that end, give back, renew or look, which memory that is full must not stop.
var endings = []string{
	"cas/delete", "done", "drop_large", "end_update", "epoch/done_tag", "epoch/revoke", "fail", "inspect", "invalidate", "mark", "mutex/inspect", "mutex/park",
	"mutex/renew", "mutex/revoke", "mutex/unlock", "permits/heartbeat", "permits/inspect", "permits/release", "permits/renew", "permits/revoke", "release", "renew",
	"renew_alone", "renew_intend", "renew_update", "rw/downgrade", "rw/heartbeat", "rw/inspect", "rw/release", "rw/renew", "rw/revoke", "rw/upgrade", "say", "time",
	"unlock_update",
}
