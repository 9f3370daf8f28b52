package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
)

// feed is one that another test has made up.
type feed struct {
	stats  cdc.Stats
	caught func(context.Context) error
}

func (f feed) Stats() cdc.Stats { return f.stats }

func (f feed) CatchUp(ctx context.Context) error { return f.caught(ctx) }

func TestFeedsAndReportsAreShown(t *testing.T) {
	t.Parallel()
	r, err := cdc.NewReport(cdc.ReportConfig{})
	expect.ErrorIs(t, err)
	h := NewHandler(Config{
		Feeds: map[string]Feed{
			"shop": feed{stats: cdc.Stats{
				Reading: true, Behind: 2 * time.Second, BehindBytes: 3, Retained: 4, Rows: 5, Transactions: 6, Invalidations: 7, Whole: 8, Reconnects: 9,
				Unmapped: 10, HeldBy: "a transaction", HeldFor: time.Minute, Err: errors.New("no rights" + strings.Repeat(".", 1000)),
			}},
			"none": nil,
		},
		Reports: map[string]*cdc.Report{"shop": r, "none": nil},
	})

	s := look(t, h)
	expect.Equal(t, "feeds", len(s.Feeds), 1)
	expect.Equal(t, "a problem", strings.HasPrefix(s.Feeds[0].Problem, "no rights.") && len(s.Feeds[0].Problem) == longestShown, true)
	s.Feeds[0].Problem = ""
	expect.Equal(t, "the feed", s.Feeds[0], feedState{"shop", true, 2, 3, 4, "a transaction", 60, 5, 6, 7, 8, 10, 9, "", -1})
	expect.Equal(t, "a row without keys is shown for a while", feedsOf(map[string]Feed{"shop": feed{stats: cdc.Stats{UnmappedAt: time.Now().Add(-mistaken / 2)}}})[0].UnmappedAgo >= 300, true)
	expect.Equal(t, "reports", len(s.Reports), 1)
	expect.Equal(t, "looks", s.Reports[0].After[1].After, 10)
	page := get(t, h, "/", http.StatusOK)
	if !strings.Contains(page, "Feeds</h2>") || !strings.Contains(page, "Consistency after changes</h2>") {
		t.Error(page)
	}
}

func TestReportsNameTheKeysThatWereOld(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := reportOf("shop", cdc.Consistency{Rows: 2, After: []cdc.Looks{{After: time.Second, Reads: 4, Old: 1}}, P99: time.Minute, Old: []cdc.OldValue{
		{Key: "before"}, {Table: "products", Key: "product:1", Committed: at, After: time.Second, Why: "a replica", Epochs: []string{"5f"}},
	}})
	expect.Equal(t, "old of a million", one.After[0].PerMillion, 250_000)
	expect.Equal(t, "p99", one.P99, 60)
	expect.Equal(t, "values", len(one.Old), 2)
	last := one.Old[0]
	expect.Equal(t, "the last one", last.Table+" "+last.Key+" "+last.Committed+" "+last.Why+" "+last.Epochs[0], "products product:1 2026-01-02T03:04:05Z a replica 5f")
}

func TestARequestCanWaitUntilAFeedHasCaughtUp(t *testing.T) {
	t.Parallel()
	why := errors.New("no instance reads")
	h := NewHandler(Config{Feeds: map[string]Feed{
		"well": feed{caught: func(context.Context) error { return nil }},
		"ill":  feed{caught: func(context.Context) error { return why }},
	}})

	ask := func(name, site string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, here+"/?do=catch-up&feed="+name, nil)
		r.Header.Set("Sec-Fetch-Site", site)
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		name, site string
		status     int
		says       string
	}{
		{"well", "", http.StatusOK, "has caught up"},
		{"ill", "", http.StatusBadGateway, why.Error()},
		{"none", "", http.StatusNotFound, "there is no feed"},
		{"well", "cross-site", http.StatusForbidden, "another site"},
	} {
		status, said := ask(c.name, c.site)
		if status != c.status || !strings.Contains(said, c.says) {
			t.Errorf("%s from %q: %d %s, want %d with %q", c.name, c.site, status, said, c.status, c.says)
		}
	}
}
