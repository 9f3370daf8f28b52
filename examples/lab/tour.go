package main

import (
	"context"
	"fmt"
	"io"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/tour"
)

// runTour drives the page with Chromium, and checks what it shows.
func runTour(ctx context.Context, out io.Writer, folder string) error {
	return open(ctx, 0, backends.Patience, settings{}, func(ctx context.Context, url string) error {
		return tour.Browse(ctx, out, folder, helpers, func(t *tour.Tour) { scenes(t, url) })
	})
}

const healthy = "now.episode === null && now.hits === 1"

func scenes(t *tour.Tour, url string) {
	t.Open(url, 1280, 760)
	t.Await("!!now && says('#link') === 'live'")
	t.Run("$('ttl').value = 600, $('ttl').dispatchEvent(new Event('change'))")
	t.Await("now.settings.ttl === 600")
	t.Seen("the page lives")

	stampede(t, "hand", 1, "queries >= 120", false)
	t.Seen("by hand, there are about as many queries as callers")
	stampede(t, "flight", 4, "queries > 1 && queries <= 5", false)
	t.Seen("with singleflight, there is one query for each instance")
	stampede(t, "guard", 4, "queries === 1", true)
	t.Seen("with cacheguard, there is one query")

	t.Click("#slow")
	t.Await("now.settings.slow")
	pictures(t, "rows('loading') === 1 && rows('waiting') === 4 && says('#busy') === '1' && says('td:nth-child(4)') === '0'")
	t.Await(healthy)
	t.Seen("one instance loads, and the others wait")

	t.Click("#expire")
	t.Await("rows('loading') === 1")
	t.Click("tr[data-state=loading] button")
	t.Await("rows('killed') === 1")
	t.Await("lines('took over') === 1 && " + healthy)
	t.Click("#slow")
	t.Await("!now.settings.slow")
	t.Click("tr[data-state=killed] button")
	t.Await("rows('serving') === 5")
	t.Seen("one other takes over from an instance that dies in mid-load")

	t.Click("#later")
	t.Await("now.outdated >= 100 && sees('#old')")
	t.Picture("lab-commit-later")
	t.Seen("with a commit after Update, callers get the old version")
	t.Click("#expire")
	t.Await("now.answered === now.version && !sees('#old') && " + healthy)
	t.Click("#intend")
	t.Await("now.settings.intend")
	t.Run("outdated = now.outdated, version = now.version")
	t.Click("#later")
	t.Await("now.version > version && now.answered === now.version && !sees('#old') && " + healthy)
	t.Check("now.outdated === outdated")
	t.Seen("with a commit under an intent, they get the new one")

	t.Click("#slow")
	t.Await("now.settings.slow")
	t.Click("#write")
	t.Await("now.instances.reduce((sum, one) => sum + one.waiting, 0) >= 50 && rows('loading') === 1")
	t.Picture("lab-write")
	t.Await("now.answered === now.version && " + healthy)
	t.Seen("after a write, callers wait for the new version")
	t.Click("#put")
	t.Await("now.settings.put && " + healthy)
	t.Run("version = now.version, loads = 0, took = setInterval(() => loads += rows('loading'), 100)")
	t.Click("#write")
	t.Await("now.version > version && now.answered === now.version && " + healthy)
	t.Check("loads === 0")
	t.Click("#slow")
	t.Await("!now.settings.slow")
	t.Seen("with Put, they have it from the writer, and nobody loads it")

	t.Run("failed = says('#failed'), $('late').value = 800, $('late').dispatchEvent(new Event('change'))")
	t.Await("now.settings.late === 800 && now.p99 >= 800 && says('#redis') === 'slow'")
	t.Picture("lab-slow")
	t.Seen("by a slow Redis, all calls are as slow")
	t.Click("#hedge")
	t.Await("now.settings.hedge && now.instances.every((one) => one.answers.loaded >= 20)")
	t.Picture("lab-slow-hedge")
	t.Check("Number(says('#peak')) <= 10 && says('#failed') === failed")
	t.Run("$('late').value = 0, $('late').dispatchEvent(new Event('change'))")
	t.Await("now.settings.late === 0 && says('#redis') === 'up'")
	t.Click("#hedge")
	t.Await("!now.settings.hedge && " + healthy)
	t.Seen("with HedgeAfter, they load beside it, in the slots that there are")

	t.Run("failed = says('#failed')")
	t.Click("#down")
	t.Await("says('#redis') === 'killed'")
	t.Await("now.instances.every((one) => one.answers.bypassed >= 200)")
	t.Check("Number(says('#peak')) <= 10 && says('#failed') === failed")
	t.Click("#down")
	t.Await("says('#redis') === 'up' && " + healthy)
	t.Check("says('#failed') === failed")
	t.Seen("while Redis is down nobody fails, and each instance shares its queries")

	t.Resize(390, 844)
	t.Await("document.documentElement.scrollWidth <= 390")
	t.Seen("it fits into a telephone")
	t.Check("(noted = 0, $('journal').replaceChildren(), now.journal[0].time -= 3600_000, draw(now), " + // at once: now is replaced soon
		"$('journal').lastChild.dataset.at === new Date(now.journal[0].time).toTimeString().slice(0, 8))")
	t.Seen("the journal has the times of what happened")
}

// stampede expires the hot key with a mode, until the card has so often shown what is expected of the queries. Only a mode that
// promises nothing may show something else now and then: it depends on how many call at the same moment.
func stampede(t *tour.Tour, mode string, times int, expected string, promised bool) {
	t.Click("[value=" + mode + "]")
	t.Await("now.settings.mode === '" + mode + "' && now.hits === 1")
	card := "says('[data-mode=" + mode + "] b')"
	for others := 0; times > 0 && t.Going(); {
		t.Run("before = lines('One expiry')")
		t.Click("#expire")
		t.Await("lines('One expiry') > before && " + healthy)
		if expectation := fmt.Sprintf("((queries) => %s)(Number(%s))", expected, card); t.Is(expectation) {
			times--
		} else if others++; promised || others > 5 {
			t.Check(expectation)
		}
	}
}

// pictures expires the hot key until the page has come to a halt with the fact in it.
func pictures(t *tour.Tour, fact string) {
	for halted := false; !halted && t.Going(); {
		t.Click("#expire")
		t.Await(fact)
		t.Click("#pause")
		if halted = t.Is(fact); halted {
			for _, scheme := range []string{"light", "dark"} {
				t.Prefer(scheme)
				t.Picture("lab-" + scheme)
			}
		}
		t.Click("#pause")
		t.Await(healthy)
	}
}

const helpers = `
	var says = (selector) => document.querySelector(selector).textContent;
	var sees = (selector) => document.querySelector(selector).checkVisibility();
	var rows = (state) => document.querySelectorAll('tr[data-state=' + state + ']').length;
	var lines = (part) => [...$('journal').children].filter((line) => line.textContent.includes(part)).length;
`
