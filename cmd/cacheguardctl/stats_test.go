package main

import (
	"encoding/json"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestStatsShowWhatThePagesOfInstancesHaveCounted(t *testing.T) {
	t.Parallel()
	page := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","loading":1,"queued":2,"breakers":6,"breakers_open":3,"warming":4,"failed_refreshes":5,
		"caches":[{"name":"","answers":{"bypassed":1,"error":9}},{"name":"product","answers":{"hit":3,"local":2,"stale":1,"negative":1,"loaded":1,"shared":1,"left":9}}],
		"shadow":{"hits":6,"missed":7,"failed":8,"differed":9,"old":10}},{"prefix":"other","instance":"other-1"}]}`)
	r := ctl(t, at(shared), "--prefix", "shop", "--json", "stats", "--page", page)
	r.want(t, done)
	var said shownStats
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said), nil)
	expect.Equal(t, "instances", len(said.Instances), 1)
	expect.Equal(t, "of the Guard", said.Instances[0], instanceStats{
		Instance: "shop-1", Loading: 1, Queued: 2, BreakersOpen: 3, Warming: 4, FailedRefreshes: 5,
		ShadowHits: 6, ShadowMisses: 7, ShadowFailures: 8, ShadowDifferent: 9, ShadowOld: 10, HitRatio: 0.7,
	})
	ctl(t, at(shared), "--prefix", "shop", "stats", "--page", page).want(t, done, "BREAKERS OPEN", "WARMING", "SHADOW HITS", "shop-1", "KEYSPACE HITS", "70.0%")
	ctl(t, at(shared), "--prefix", "shopp", "stats", "--page", page).want(t, done, `no page shows a Guard with the Prefix "shopp"`)
}
