package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// made is a feed that the test has made up.
type made struct {
	stats cdc.Stats
	err   error // of CatchUp
}

func (m made) Stats() cdc.Stats { return m.stats }

func (m made) CatchUp(context.Context) error { return m.err }

// noRedis shows that nobody asks for one.
const noRedis = "redis://127.0.0.1:1"

// instanceWith is the page of an instance that has the feed.
func instanceWith(t *testing.T, name string, f admin.Feed) string {
	t.Helper()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: "feeds", Instance: name})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	report, err := cdc.NewReport(cdc.ReportConfig{})
	expect.ErrorIs(t, err)
	cfg := admin.Config{Guards: []*cacheguard.Guard{guard}}
	if f != nil {
		cfg.Feeds, cfg.Reports = map[string]admin.Feed{"shop": f}, map[string]*cdc.Report{"shop": report}
	}
	page := httptest.NewServer(admin.NewHandler(cfg))
	t.Cleanup(page.Close)
	return page.URL
}

func TestFeedsOfAllInstancesAreShown(t *testing.T) {
	t.Parallel()
	reads := instanceWith(t, "shop-1", made{stats: cdc.Stats{Reading: true, Behind: 1500 * time.Millisecond, Rows: 7}})
	standsBy := instanceWith(t, "shop-2", made{})
	r := ctl(t, noRedis, "--json", "cdc", "status", "--page", reads+","+standsBy)
	r.want(t, done)
	var said shownFeeds
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said))
	expect.Equal(t, "the reader", said.Feeds[0], feed{Instance: "shop-1", Name: "shop", Reading: true, Behind: 1.5, Rows: 7, UnmappedAgo: -1})
	expect.Equal(t, "the other", said.Feeds[1], feed{Instance: "shop-2", Name: "shop", UnmappedAgo: -1})
	ctl(t, noRedis, "cdc", "status", "--page", standsBy).want(t, failed, "none of these instances reads", "stands by")
	ill := instanceWith(t, "shop-3", made{stats: cdc.Stats{Reading: true, Err: errors.New("no rights")}})
	ctl(t, noRedis, "cdc", "status", "--page", ill).want(t, failed, "in trouble on shop-3", "no rights")
	ctl(t, noRedis, "cdc", "status").want(t, misused, "CACHEGUARD_PAGES")
}

func TestCatchUpTakesTheFirstInstanceThatCanSay(t *testing.T) {
	t.Parallel()
	well, ill := instanceWith(t, "shop-1", made{}), instanceWith(t, "shop-2", made{err: errors.New("the database does not answer")})
	ctl(t, noRedis, "cdc", "catchup", "shop", "--page", ill+","+well).want(t, done, "feed shop has caught up")
	ctl(t, noRedis, "cdc", "catchup", "shop", "--page", ill).want(t, failed, "the database does not answer", "has not caught up")
	ctl(t, noRedis, "cdc", "catchup", "other", "--page", well).want(t, failed, "there is no feed")
	ctl(t, noRedis, "cdc", "catchup", "shop").want(t, misused, "CACHEGUARD_PAGES")
}

func TestReportsOfAllInstancesAreShown(t *testing.T) {
	t.Parallel()
	page := instanceWith(t, "shop-1", made{})
	ctl(t, noRedis, "cdc", "report", "--page", page).want(t, done, "shop on shop-1: 0 rows were looked at")
	ctl(t, noRedis, "cdc", "report").want(t, misused, "CACHEGUARD_PAGES")
	without := instanceWith(t, "shop-2", nil)
	ctl(t, noRedis, "cdc", "report", "--page", page+","+without).want(t, failed, "shop on shop-1", "there is no report on shop-2")
	ctl(t, noRedis, "cdc", "status", "--page", without).want(t, failed, "there is no feed")
}

func TestTriggersArePrintedForAMigration(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"postgres", "mysql", "sqlite"} {
		r := ctl(t, noRedis, "cdc", "triggers", "--dialect", dialect, "products", "id", "category")
		r.want(t, done, "CREATE TABLE IF NOT EXISTS cacheguard_outbox", "'category'")
		expect.Equal(t, "the end", strings.HasSuffix(r.out, ";\n"), true)
		again := ctl(t, noRedis, "cdc", "triggers", "--dialect", dialect, "products", "id", "category")
		expect.Equal(t, "the same each time", again.out, r.out)
	}
	ctl(t, noRedis, "--json", "cdc", "triggers", "--dialect", "sqlite", "products", "id").want(t, done, `{"statements":["CREATE TABLE`)
	ctl(t, noRedis, "cdc", "triggers", "--dialect", "oracle", "products", "id").want(t, misused, "oracle")
}
