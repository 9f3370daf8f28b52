package cacheguard

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// deafGuard returns a Guard with a local tier, and its log. Its Redis user may at first use no channels of the prefixes.
func deafGuard(t *testing.T, rdb Redis) (g *Guard, log func() string) {
	t.Helper()
	cfg, log := logged()
	cfg.Prefix, cfg.Local = "shop", LocalConfig{MaxEntries: 10}
	g = newGuard(t, rdb, cfg)
	return g, log
}

func TestASubscriptionThatWasNeverAllowedIsLoggedOnceWithTheReason(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "resetchannels", "+@all")
	g, log := deafGuard(t, s.Client(t, redistest.User("app", "secret")))
	expect.Equal(t, "needs no messages yet", g.Stats().Subscribed, true)
	mustGet(t, g, "k", returns("v"))
	redistest.Await(t, "the log says so", func() bool { return strings.Contains(log(), "cannot subscribe") })
	expect.Equal(t, "subscribed", g.Stats().Subscribed, false)
	for _, part := range []string{"NOPERM", "shop:invalidated", "shop:inbox:"} {
		if !strings.Contains(log(), part) {
			t.Errorf("%q is not in %s", part, log())
		}
	}
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "&*")
	redistest.Await(t, "the log says that it is over", func() bool { return strings.Contains(log(), "subscription established") })
	expect.Equal(t, "subscribed", g.Stats().Subscribed, true)
	expect.Equal(t, "lines", len(lines(log(), "cannot subscribe"))+len(lines(log(), "subscription established")), 2)

	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "resetchannels") // ends the connections, too
	redistest.Await(t, "one that was there is lost", func() bool { return strings.Contains(log(), "subscription lost") })
}

// Everything that uses a client shares one subscription, and Redis refuses all of its channels or none.
func TestAChannelOfALockThatIsRefusedIsNamedInTheGuardsLog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "resetchannels", "&shop:*", "+@all")
	rdb := s.Client(t, redistest.User("app", "secret"))
	g, log := deafGuard(t, rdb)
	mustGet(t, g, "k", returns("v"))
	redistest.Await(t, "messages arrive", g.inbox.Live)
	jobs, err := mutex.New(rdb, mutex.Config{Prefix: "jobs"})
	expect.ErrorIs(t, err)
	defer jobs.Close()
	lease, err := jobs.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	redistest.Await(t, "the log names it", func() bool { return strings.Contains(log(), "jobs:inbox:") })
	expect.ErrorIs(t, lease.Unlock(t.Context()))
}
