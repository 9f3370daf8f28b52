package cacheguard

import (
	"strconv"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A tier that is dropped each second has no hits, though the subscription stands whenever somebody looks.
func TestATierThatIsDroppedAgainAndAgainIsATroubleForAllWhoAreTold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, s *redistest.Server, g *Guard, n int){
		"the subscription is cut": func(t *testing.T, s *redistest.Server, g *Guard, _ int) {
			t.Helper()
			redistest.Await(t, "it stands", g.inbox.Live)
			expect.ErrorIs(t, s.Client(t).Do(t.Context(), "client", "kill", "type", "pubsub").Err())
		},
		"every other message is lost": func(t *testing.T, s *redistest.Server, g *Guard, n int) {
			t.Helper()
			redistest.Await(t, "it stands", g.inbox.Live)
			expect.ErrorIs(t, s.Client(t).Publish(t.Context(), g.notices.Channel, "other/0 "+strconv.Itoa(2*n)+" k").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			cfg, log := logged()
			cfg.Prefix, cfg.Local = "shop", LocalConfig{MaxEntries: 10}
			g := newGuard(t, s.Client(t), cfg)
			mustGet(t, g, "k", returns("v"))
			lost := 0
			redistest.Await(t, "the log says so", func() bool {
				lost++
				lose(t, s, g, lost)
				_, _, _ = get(t.Context(), g, "k", returns("v")) // which gives up what is missing
				return len(lines(log(), "messages may have been missed again and again, the local tier is dropped")) == 1
			})
			expect.Equal(t, "on the page", g.observed().Troubles().Last["missed"] > 0, true)
			expect.Equal(t, "Stats", g.Stats().Subscribed, false)
			redistest.Await(t, "the log says that it is over", func() bool {
				return len(lines(log(), "messages arrive steadily again")) == 1
			})
			expect.Equal(t, "Stats", g.Stats().Subscribed, true)
		})
	}
}
