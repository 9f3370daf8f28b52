package memory

import (
	"slices"
	"testing"

	"github.com/cacheguard/go/internal/redis/acl"
)

// A connection answers SUBSCRIBE itself, and no package needs a right for what clients send on their own.
func TestTheTableHasTheCommandsThatTheLibrarySendsAndNoMore(t *testing.T) {
	t.Parallel()
	sent := []string{"HELLO", "INFO", "PING", "WAIT"}
	for _, set := range acl.All() {
		for _, name := range slices.Concat(set.Commands, set.Optional) {
			if sent = append(sent, name); plain[name].do == nil && name != "SUBSCRIBE" {
				t.Errorf("%s sends %s, which the table lacks", set.Package, name)
			}
		}
	}
	for name := range plain {
		if !slices.Contains(sent, name) {
			t.Errorf("the table has %s, which no package sends", name)
		}
	}
}
