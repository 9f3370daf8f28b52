package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/watch/observe"
)

// mistakes were made so long ago, each once.
type mistakes map[string]time.Duration

func (mistakes) Kinds() []string { return nil }

func (m mistakes) Unknown() map[string]observe.Mistyped {
	all := make(map[string]observe.Mistyped)
	for kind, ago := range m {
		all[kind] = observe.Mistyped{Times: 1, Last: time.Now().Add(-ago)}
	}
	return all
}

func TestAMistakeLeavesWhatIsWrongNow(t *testing.T) {
	t.Parallel()
	counts, ago := mistyped(mistakes{"categroy": 3 * time.Minute, "lits": 25 * time.Minute})
	expect.Equal(t, "counted", fmt.Sprint(counts), "map[categroy:1]")
	expect.Equal(t, "seconds ago, at least", len(ago) == 1 && ago["categroy"] >= 180, true)
}
