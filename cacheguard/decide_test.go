package cacheguard

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestEachStateOfAnEntryHasItsAction(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		state
		action
	}{
		{"missing", missing, doRebuild},
		{"fresh", fresh, doServe},
		{"ageing", ageing, doRefresh},
		{"stale", stale, doRefresh},
		{"expired", expired, doRebuild},
		{"revoked", revoked, doRebuild},
		{"unusable", unusable, doRebuild},
		{"alien entry", alienEntry, doLoadApart},
		{"unreachable", unreachable, doBypass},
	}
	taken := make(map[action]bool)
	for i, row := range rows {
		expect.Equal(t, row.name+": its place in the table", int(row.state), i) // a new state needs a row
		expect.Equal(t, row.name, decide(row.state), row.action)
		taken[row.action] = true
	}
	expect.Equal(t, "states", len(rows), int(unreachable)+1)
	expect.Equal(t, "actions", len(taken), int(doLoadApart)+1)
}
