package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// pageOf is a page of package admin that shows the data.
func pageOf(t *testing.T, data string) string {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, "asked for", r.URL.RawQuery, "view=data")
		_, _ = w.Write([]byte(data)) // the command would report it
	}))
	t.Cleanup(page.Close)
	return page.URL
}

func TestCheckSaysWhatThePagesOfInstancesShow(t *testing.T) {
	t.Parallel()
	const busy = `{"guards":[{"prefix":"shop","instance":"shop-1","refused":"fill: OOM command","bypassed":"on this instance","queued":7,"max_loads":4,"intents":2,"oldest_intent_of":"update of [\"page:7\"]",
		"troubles":{"outage":2.5,"pending":1,"refused":3,"deaf":60,"saturated":9,"intent":12,"bypassed":1},"order":["outage","refused","pending","bypassed","deaf","intent","saturated"],"cause":"outage","brought":["pending","deaf","saturated"],
		"running":[{"key":"report","took":12.34,"began":"2026-11-29T03:00:01Z"},{"key":"price","took":11},{"key":"b","took":1}],"hot":[{"key":"home","rate":800},{"key":"a","rate":70}],
		"caches":[{"name":"product","rate":900,"lately":{"damaged":1,"unstorable":2,"takeovers":3},"lately_ago":{"damaged":100,"unstorable":20,"takeovers":30},
		"failing":{"for":12.04,"loads":780,"failed":639,"last":"pq: relation products is locked"}},{"name":"","rate":100,"failing":{"for":13,"loads":220,"failed":81,"last":"pq: relation products is locked"}},
		{"name":"user","failing":{"for":4,"loads":4,"failed":4,"last":"users are gone"}}]}],
		"lockers":[{"prefix":"jobs","locks":[{"name":"import","for":31},{"name":"mail","for":29}]},{"prefix":"other","locks":[{"name":"x","for":99}]}],
		"feeds":[{"name":"log","problem":"no rights","behind":99,"retained_bytes":1073741824},{"name":"late","behind":12,"unmapped":2},{"name":"well","behind":9,"unmapped":7,"unmapped_ago":-1},{"name":"rows","unmapped":1,"unmapped_ago":9}],
		"pages":[{"name":"site","space":"shop","failing":{"requests":200,"of":3,"why":"/products/7"},"faulty":{"requests":200,"of":5,"why":"/home"},"uncached":{"requests":190,"of":180,"why":"set-cookie"}},{"name":"well"}]}`
	const deaf = `{"guards":[{"prefix":"shop","instance":"shop-3","refused":"get: NOPERM","deaf_as":"subscribe to shop:inbox:x: NOPERM","troubles":{"deaf":0,"missed":4,"mute":5,"refused":26},"order":["refused","deaf","missed","mute"]}],
		"lockers":[{"prefix":"mail","kind":"mutex","deaf":true}]}`
	const well = `{"guards":[{"prefix":"shop","instance":"shop-2","troubles":{},"caches":[{"rate":9}],"running":[{"key":"price","took":0.1}],"hot":[{"key":"home","rate":50}]},
		{"prefix":"tier","instance":"shop-2","troubles":{"outage":9,"pending":8},"cause":"outage","brought":["pending"]}],
		"lockers":[{"prefix":"jobs","kind":"mutex","deaf":false}]}`
	const strange = `{"guards":[{"prefix":"other","instance":"other-1","troubles":{"outage":1}}]}`
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	pages := strings.Join([]string{pageOf(t, busy), pageOf(t, well), pageOf(t, deaf), pageOf(t, strange), dead.URL}, ",")
	r := ctl(t, at(shared), "--prefix", "shop", "--lock-prefix", "jobs", "--json", "check", "--page", pages)
	r.want(t, failed, "a check failed")
	var said checked
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said), nil)
	var found []string
	for _, f := range said.Findings {
		if f.Check == "instance" {
			found = append(found, f.Result+" "+f.Node+": "+f.Detail)
		}
	}
	found = slices.DeleteFunc(found, func(f string) bool { return strings.HasSuffix(f, "connection refused") })
	expect.Equal(t, "findings", strings.Join(found, "\n"), strings.Join([]string{
		"failed shop-1: Redis does not answer, for 2.5s; so invalidations are pending, for 1s; so messages do not arrive, for 1m0s; so 7 loads wait for MaxLoads, which is 4, for 9s",
		"failed shop-1: Redis answered with an error, last 3s ago: fill: OOM command",
		"warning shop-1: the cache is bypassed, for 1s, on this instance",
		`warning shop-1: 2 intents stand, the oldest for 12s, an update of ["page:7"]`,
		`warning shop-1: a load of "report" has run for 12.3s, since 2026-11-29T03:00:01Z, and 1 other for more than 3 s`,
		"warning shop-1: product, keys of no Cache: 72% of loads fail, for 13s, last: pq: relation products is locked",
		"failed shop-1: user: 100% of loads fail, for 4s, last: users are gone",
		"warning shop-1: pages of site, space shop: 3 of 200 requests failed in the last minutes, the last for \"/products/7\": the handler panics, breaks off or takes too long, Redis refuses, or clients left",
		"warning shop-1: pages of site, space shop: 5 of 200 requests got an error (500 or more) from the cache in the last minutes, the last for \"/home\": its handler, StatusTTL or StoreErrors lets the cache store it: invalidate the page when the handler works again",
		"warning shop-1: pages of site, space shop: the responses to 180 of 190 requests could not be stored in the last minutes, most of them: set-cookie",
		`warning shop-1: it has held the lock "import" for 31s`,
		"failed shop-1: feed log: changes wait to be invalidated: no rights",
		"warning shop-1: feed log: the database keeps 1024.0MiB of its log for it",
		"warning shop-1: feed late is behind for 12s",
		"warning shop-1: feed late: the keys of 2 rows were not known, so kinds were invalidated whole: its log has the column",
		"warning shop-1: feed rows: the keys of 1 row were not known, last 9s ago, so kinds were invalidated whole: its log has the column",
		"warning shop-1: product: values could not be stored lately: 2, last 20s ago at most",
		"warning shop-1: product: loads were taken over from instances that died, stood still or could not renew lately: 3, last 30s ago at most",
		"warning shop-1: product: entries could not be decoded lately: 1, last 1m40s ago at most",
		`warning shop-2: its Guard "tier": Redis does not answer, for 9s; so invalidations are pending, for 8s: see check --prefix tier`,
		`ok shop-2: its page shows nothing wrong with the Guard "shop"`,
		"warning shop-3: messages do not arrive: subscribe to shop:inbox:x: NOPERM",
		"warning shop-3: messages may have been missed again and again, for 4s: calls that wait ask again each time, and a local tier, if there is one, is dropped",
		"warning shop-3: messages about invalidations are refused, for 5s: other local tiers, if there are any, may serve old values until Local.TTL",
		"warning shop-3: mail (mutex): messages do not arrive: calls that wait for locks poll",
		"warning shop-3: Redis answered with an error, last 26s ago and not since then: get: NOPERM",
		`warning other-1: its Guard "other": Redis does not answer, for 1s: see check --prefix other`,
		`warning other-1: its page shows no Guard with the Prefix "shop": it has "other"`,
		`warning shop-1: it has 1000 gets/s, the next one has 9; its hottest key is "home"`,
	}, "\n"))
	hot := said.Findings[len(said.Findings)-1]
	expect.Equal(t, "hottest", hot.Result+" "+hot.Check+": "+hot.Detail, `ok hottest keys: about 850 gets/s for "home", about 70 gets/s for "a"`)
	expect.Equal(t, "dead instances", strings.Count(r.out, "connection refused"), 1)
}

// A slow Redis is a warning, and what it makes wrong is wrong.
func TestWhatASlowRedisBringsIsInItsLine(t *testing.T) {
	t.Parallel()
	var p paged
	expect.ErrorIs(t, json.Unmarshal([]byte(`{"guards":[{"troubles":{"slow":9,"pending":2,"intent":7},"order":["slow","pending","intent"],"cause":"slow","brought":["pending"]}],"lockers":[{"prefix":"jobs","kind":"mutex","deaf":true}]}`), &p))
	found := together(append(p.Guards[0].findings(), p.lockFindings("")...))
	expect.Equal(t, "findings", len(found), 2)
	expect.Equal(t, "the cause", found[0].Result+" "+found[0].Detail,
		"failed Redis takes longer than the loads that it saves, for 9s; so invalidations are pending, for 2s; so jobs (mutex): messages do not arrive: calls that wait for locks poll")
	for cause, lines := range map[string]int{"refused": 1, "": 2} {
		g := pagedGuard{Troubles: map[string]float64{"refused": 1, "mute": 1}, Order: []string{"refused", "mute"}, Cause: cause}
		if cause != "" {
			g.Brought = []string{"pending", "mute"}
		}
		expect.Equal(t, "lines of what "+cause+" brings", len(together(g.findings())), lines)
	}
}

func TestCheckAsksThePagesWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	page := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","troubles":{"deaf":2,"outage":2.5},"order":["outage","deaf"],"cause":"outage","brought":["deaf"]}]}`)
	r := ctl(t, "redis://127.0.0.1:1", "--prefix", "shop", "--json", "check", "--page", page)
	r.want(t, unreachable, "cacheguardctl: ")
	var said checked
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said), nil)
	var found []string
	for _, f := range said.Findings {
		detail, _, _ := strings.Cut(f.Detail, ":")
		found = append(found, strings.Join([]string{f.Result, f.Check, f.Node, detail}, "|"))
	}
	expect.Equal(t, "findings", strings.Join(found, "\n"), "failed|redis||Redis cannot be reached from here\n"+
		"failed|instance|shop-1|Redis does not answer, for 2.5s; so messages do not arrive, for 2s")
	expect.Equal(t, "well", said.OK, false)
}

func TestStatsAskThePagesWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	page := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","caches":[{"name":"","answers":{"hit":1,"loaded":1}}]}]}`)
	ctl(t, "redis://127.0.0.1:1", "--prefix", "shop", "stats", "--page", page).want(t, unreachable, "50.0%", "127.0.0.1:1", "refused")
	ctl(t, "redis://127.0.0.1:1", "--prefix", "shop", "stats").want(t, unreachable, "CACHEGUARD_PAGES")
}

// What the page says is wrong, check says, too.
func TestCheckKnowsEachTroubleThatThePageShows(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../admin/page.js")
	expect.ErrorIs(t, err)
	names := regexp.MustCompile(`(?m)^    (\w+): \['(?:bad|warn)', \(g, s`).FindAllSubmatch(page, -1)
	expect.Equal(t, "troubles are found", len(names) > 5, true)
	for _, name := range names {
		name := string(name[1])
		g := pagedGuard{Troubles: map[string]float64{name: 7}}
		if f := g.trouble(name); strings.HasPrefix(f.Detail, name+",") {
			t.Errorf("%s: %s", name, f.Detail)
		}
	}
	for _, name := range regexp.MustCompile(`if \(p\.(\w+)\) \{`).FindAllSubmatch(page, -1) {
		var p paged
		expect.ErrorIs(t, json.Unmarshal(fmt.Appendf(nil, `{"pages":[{%q:{"requests":1,"of":1}}]}`, name[1]), &p))
		expect.Equal(t, "findings of pages that are "+string(name[1]), len(p.pagesFindings()), 1)
	}
	names = regexp.MustCompile(`c\.lately\.(\w+) > 0`).FindAllSubmatch(page, -1)
	expect.Equal(t, "what happened lately is found", len(names) > 2, true)
	for _, name := range names {
		var c pagedCache
		expect.ErrorIs(t, json.Unmarshal(fmt.Appendf(nil, `{"lately":{%q:1}}`, name[1]), &c))
		expect.Equal(t, "findings of "+string(name[1]), len(c.findings()), 1)
	}
}

func TestCheckFailsIfNearlyAllLoadsDo(t *testing.T) {
	t.Parallel()
	for failed, code := range map[int]int{20: failed, 19: failed, 18: done} {
		page := pageOf(t, fmt.Sprintf(`{"guards":[{"prefix":"shop","instance":"shop-1","caches":[{"name":"product","failing":{"for":12,"loads":20,"failed":%d,"last":"refused"}}]}]}`, failed))
		ctl(t, at(shared), "--prefix", "shop", "check", "--no-locks", "--page", page).want(t, code, "of loads fail, for 12s, last: refused")
	}
}

func TestWhoIsWaitedForIsSaid(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-said:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(`{}`)) // the command would report it
	}))
	t.Cleanup(page.Close)
	cmd := command(t.Context(), at(shared), "--prefix", "shop", "stats", "--page", page.URL)
	errors, err := cmd.StderrPipe()
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, cmd.Start())
	waits := 0
	for lines := bufio.NewScanner(errors); lines.Scan(); {
		if strings.Contains(lines.Text(), "waiting for the page at "+strings.TrimPrefix(page.URL, "http://")) {
			waits++
			close(said)
		}
	}
	expect.Equal(t, "said", waits, 1)
	expect.ErrorIs(t, cmd.Wait())
}

func TestCallsThatFailAreInTheHitRatio(t *testing.T) {
	t.Parallel()
	g := pagedGuard{Caches: []pagedCache{{Answers: map[string]uint64{"hit": 1, "error": 3, "left": 5, "missed": 7}}}}
	expect.Equal(t, "ratio", g.hitRatio(), 0.25)
}
