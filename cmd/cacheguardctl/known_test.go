package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestCheckNamesWhatIsInvalidatedAndNoInstanceHas(t *testing.T) {
	t.Parallel()
	first := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","tags":["category"],"keys":["price"],
		"unknown_tags":{"categroy":2,"list":1},"unknown_tags_ago":{"categroy":180.4,"list":1},"unknown_keys":{"prodcut":3,"product":1},"caches":[{"name":""}]}]}`)
	second := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-2","tags":["list"],"keys":[],"unknown_keys":{"price":1},"caches":[{"name":"product"}]}]}`)
	r := ctl(t, at(shared), "--prefix", "shop", "check", "--page", first+","+second)
	r.want(t, done, `tags like "categroy" were invalidated (2, last 3m0s ago), and no load of these instances has had one`, `keys like "prodcut" were invalidated (3)`)
	expect.Equal(t, "findings", strings.Count(r.out, "were invalidated"), 2)
	expect.Equal(t, "what is well", strings.Count(r.out, "its page shows nothing wrong"), 1) // shop-2 has no finding
}

func TestWhatIsMistypedDoesNotLookLikeSuccess(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	keep(t, guard, "category:x") // a load reads the epoch of everything, and one of the tag "all"
	_, err := cacheguard.Get(t.Context(), guard, "page:x", func(ctx context.Context) (string, error) { cacheguard.SetTags(ctx, "tag:product-3"); return "v", nil })
	expect.ErrorIs(t, err)
	page := pageOf(t, `{"guards":[{"prefix":"`+prefix+`","tags":["category","all"],"keys":[],"caches":[{"name":"","answers":{}},{"name":"product"}]},
		{"prefix":"other","tags":["categroy"],"keys":["prodcut"],"caches":[{"name":"","answers":{"hit":1}},{"name":"prodcut"}]}]}`)
	pages := pageOf(t, `{"guards":[{"prefix":"`+prefix+`","tags":["tag"],"keys":["page"],"caches":[]}]}`)
	old := pageOf(t, `{"guards":[{"prefix":"old","caches":[{"name":"","answers":{"hit":1}}]}]}`)
	for _, test := range []struct {
		prefix string
		args   []string
		want   string
	}{
		{prefix, []string{"a"}, "invalidated  a\n"},
		{prefix, []string{"a"}, "invalidated  a  nothing was there\n"},
		{prefix, []string{"product:1", "prodcut:1", "--page", page}, "invalidated  product:1  nothing was there\ninvalidated  prodcut:1  nothing was there\n" +
			`note: no page shows a Cache that the key "prodcut:1" could be of` + "\n"},
		{prefix, []string{"product1", "--page", page}, "invalidated  product1  nothing was there\n" +
			`note: no page shows a Cache that the key "product1" could be of` + "\n"},
		{prefix, []string{"--tag", "all", "--tag", "category"}, "invalidated tag  all\ninvalidated tag  category  nothing had it\n"},
		{prefix, []string{"--cache", "product", "--cache", "prodcut", "--page", page}, "invalidated cache  product\ninvalidated cache  prodcut\n" +
			`note: no page shows a Cache with the Name "prodcut"` + "\n"},
		{prefix, []string{"--tag", "category:shoes", "--tag", "categroy:shoes", "--page", page}, "invalidated tag  category:shoes  nothing had it\ninvalidated tag  categroy:shoes  nothing had it\n" +
			`note: no load of these instances has had the tag "categroy:shoes", or one like it` + "\n"},
		{prefix, []string{"page:https://shop.example/", "--tag", "tag:produkt-7", "--page", pages}, "invalidated      page:https://shop.example/  nothing was there\ninvalidated tag  tag:produkt-7               nothing had it\n" +
			`note: no entry has the key "page:https://shop.example/": the name of a page has no scheme; did you mean "page://shop.example/"?` + "\n" +
			`note: no entry has the tag "tag:produkt-7": if it is of pages, is it spelled as in Cache-Tag?` + "\n"},
		{prefix, []string{"--tag", "product-3", "--page", pages}, "invalidated tag  product-3  nothing had it\n" + `note: no load of these instances has had the tag "product-3", or one like it` + "\n" +
			`note: no entry has the tag "product-3", and pages have "tag:product-3": did you mean that?` + "\n"},
		{"old", []string{"x", "--tag", "x", "--page", old}, "invalidated      x  nothing was there\ninvalidated tag  x  nothing had it\n"},
	} {
		if test.want == "invalidated  a\n" {
			keep(t, guard, "a")
		}
		r := ctl(t, at(shared), append([]string{"--prefix", test.prefix, "invalidate"}, test.args...)...)
		r.want(t, done)
		expect.Equal(t, strings.Join(test.args, " "), r.out, test.want)
	}
	for _, order := range [][]string{{"bypass", "0"}, {"invalidate", "--all", "--yes"}} {
		r := ctl(t, at(shared), slices.Concat([]string{"--prefix", prefix + "s"}, order, []string{"--page", page})...)
		r.want(t, misused, "nothing was done", `no page shows a Guard with the Prefix "`+prefix+`s": is --prefix right? They have "other", "`+prefix+`"`)
	}
	ctl(t, at(shared), "--prefix", prefix, "invalidate", "a", "--page", page+",http://127.0.0.1:1").want(t, done, "not all instances were asked", "refused")
}

func TestPagesThatCannotBeReadAreNotTakenForPagesWithoutTheGuard(t *testing.T) {
	t.Parallel()
	wrong := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(wrong.Close)
	for why, page := range map[string]string{"refused": "http://127.0.0.1:1", "404": wrong.URL} {
		for _, order := range append([][]string{{"inspect", "a"}}, orders...) {
			r := ctl(t, at(shared), slices.Concat([]string{"--prefix", "test-" + rand.Text()}, order, []string{"--page", page})...)
			r.want(t, done, "note: no page could be read", "is not known: ", why)
			expect.Equal(t, "a guess: "+r.out, strings.Contains(r.out+r.errors, "no page shows a Guard"), false)
		}
	}
}

func TestWhatIsMisusedIsNotHalfDone(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	keep(t, guard, "a")
	for _, args := range [][]string{{"--tag", ""}, {""}, {"--cache", ""}, {"--tag", strings.Repeat("x", 999)}, {"--cache", "x:y"}} {
		ctl(t, at(shared), append([]string{"--prefix", prefix, "invalidate", "a"}, args...)...).want(t, misused)
		ctl(t, at(shared), "--prefix", prefix, "inspect", "a").want(t, done, `"a": fresh`)
	}
}

func TestSizeMeasuresEntriesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := ctl(t, at(s), "size", "--samples=2", "--payload=100", "--tags=0,1")
	r.want(t, done, "no cache", "a cache with a version", "MORE THAN A SET", "INSTANCES", "1000", "31000", "SERIES OF METRICS", "1093000")
	expect.Equal(t, "lines of entries", strings.Count(r.out, " 100 "), 7) // and the fleet of 100
	left, err := s.Client(t).Keys(t.Context(), "*").Result()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "keys that were left", strings.Join(left, " "), "")
	ctl(t, at(s), "size", "--samples=1", "--payload=100", "--tags=4", "--json").want(t, done, `"entries":[{"payload":100,"tags":4,"of":"no cache"`)
}

func TestSizeWorksOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	ctl(t, "redis://"+strings.Join(c.Addrs(), ","), "size", "--samples=3", "--payload=100", "--tags=1").want(t, done, "a cache with a version")
	for i := range c.Addrs() {
		left, err := c.Node(i).Client(t).Keys(t.Context(), "*").Result()
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "keys that were left", strings.Join(left, " "), "")
	}
}

func TestCheckNamesTheServerForAUserWhoMayNotAskForInfo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-info").Err(), nil)
	ctl(t, "redis://poor:secret@"+s.Addr(), "check").want(t, done, ", standalone", "warning  maxmemory-policy")
}

func TestStatsShowWhatThePagesOfInstancesHaveCounted(t *testing.T) {
	t.Parallel()
	page := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","loading":1,"queued":2,"breakers":6,"breakers_open":3,"warming":4,"failed_refreshes":5,
		"caches":[{"name":"","answers":{"bypassed":1,"error":4}},{"name":"product","answers":{"hit":3,"local":2,"stale":1,"negative":1,"loaded":1,"shared":1,"left":9}}]},{"prefix":"other","instance":"other-1"}]}`)
	r := ctl(t, at(shared), "--prefix", "shop", "--json", "stats", "--page", page)
	r.want(t, done)
	var said shownStats
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said), nil)
	expect.Equal(t, "instances", len(said.Instances), 1)
	expect.Equal(t, "of the Guard", fmt.Sprintf("%+v", said.Instances[0]), fmt.Sprintf("%+v", instanceStats{
		Instance: "shop-1", Loading: 1, Queued: 2, BreakersOpen: 3, Warming: 4, FailedRefreshes: 5,
		HitRatio: 0.5,
	}))
	ctl(t, at(shared), "--prefix", "shop", "stats", "--page", page).want(t, done, "BREAKERS OPEN", "WARMING", "FAILED REFRESHES", "shop-1", "KEYSPACE HITS", "50.0%")
	ctl(t, at(shared), "--prefix", "shopp", "stats", "--page", page).want(t, done, `no page shows a Guard with the Prefix "shopp"`)
}
