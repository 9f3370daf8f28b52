package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/cacheguard/go/examples/internal/backends"
)

// runTour drives the page with Chromium, and checks what it shows.
func runTour(ctx context.Context, out io.Writer, folder string) error {
	browser := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
		}
	}
	if browser == "" {
		return errors.New("-tour: please install chromium (apt-get install chromium), or Chrome")
	}
	profile, err := os.MkdirTemp("", "cacheguard-lab-")
	if err != nil {
		return err
	}
	return errors.Join(open(ctx, 0, backends.Patience, func(ctx context.Context, url string) error {
		ctx, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(browser), chromedp.UserDataDir(profile), chromedp.Headless,
			chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-sync", true))
		defer stop()
		ctx, end := chromedp.NewContext(ctx)
		defer end()
		t := tour{ctx: ctx, out: out, folder: folder}
		t.scenes(url)
		return errors.Join(t.err, chromedp.Cancel(ctx))
	}), os.RemoveAll(profile))
}

// tour goes through scenes. It waits for facts on the page, never for a time. After an error it does nothing any more.
type tour struct {
	ctx    context.Context //nolint:containedctx // of the browser's tab
	out    io.Writer
	folder string // for the pictures
	err    error
}

const healthy = "now.episode === null && now.hits === 1"

func (t *tour) scenes(url string) {
	t.do(chromedp.EmulateViewport(1280, 706), chromedp.Navigate(url))
	t.await("!!now && says('#link') === 'live'")
	t.run("$('ttl').value = 600, $('ttl').dispatchEvent(new Event('change'))")
	t.await("now.settings.ttl === 600")
	t.seen("the page lives")

	t.stampede("hand", 1, "queries >= 120", false)
	t.seen("by hand, there are about as many queries as callers")
	t.stampede("flight", 4, "queries > 1 && queries <= 5", false)
	t.seen("with singleflight, there is one query for each instance")
	t.stampede("guard", 4, "queries === 1", true)
	t.seen("with cacheguard, there is one query")

	t.click("#slow")
	t.await("now.settings.slow")
	t.pictures("rows('loading') === 1 && rows('waiting') === 4 && says('#busy') === '1' && says('td:nth-child(4)') === '0'")
	t.await(healthy)
	t.seen("one instance loads, and the others wait")

	t.click("#expire")
	t.await("rows('loading') === 1")
	t.click("tr[data-state=loading] button")
	t.await("rows('killed') === 1")
	t.await("lines('took over') === 1 && " + healthy)
	t.click("#slow")
	t.await("!now.settings.slow")
	t.click("tr[data-state=killed] button")
	t.await("rows('serving') === 5")
	t.seen("one other takes over from an instance that dies in mid-load")

	t.run("failed = says('#failed')")
	t.click("#down")
	t.await("says('#redis') === 'killed'")
	t.await("now.instances.every((one) => one.answers.bypassed >= 200)")
	t.check("Number(says('#peak')) <= 10 && says('#failed') === failed")
	t.click("#down")
	t.await("says('#redis') === 'up' && " + healthy)
	t.check("says('#failed') === failed")
	t.seen("while Redis is down nobody fails, and each instance shares its queries")
}

// stampede expires the hot key with a mode, until the card has so often shown what is expected of the queries. Only a mode that
// promises nothing may show something else now and then: it depends on how many call at the same moment.
func (t *tour) stampede(mode string, times int, expected string, promised bool) {
	t.click("[value=" + mode + "]")
	t.await("now.settings.mode === '" + mode + "' && now.hits === 1")
	card := "says('[data-mode=" + mode + "] b')"
	for others := 0; times > 0 && t.err == nil; {
		t.run("before = lines('One expiry')")
		t.click("#expire")
		t.await("lines('One expiry') > before && " + healthy)
		if expectation := fmt.Sprintf("((queries) => %s)(Number(%s))", expected, card); t.is(expectation) {
			times--
		} else if others++; promised || others > 5 {
			t.check(expectation)
		}
	}
}

// pictures expires the hot key until the page has come to a halt with the fact in it.
func (t *tour) pictures(fact string) {
	for halted := false; !halted && t.err == nil; {
		t.click("#expire")
		t.await(fact)
		t.click("#pause")
		if halted = t.is(fact); halted {
			t.picture("light")
			t.picture("dark")
		}
		t.click("#pause")
		t.await(healthy)
	}
}

func (t *tour) picture(scheme string) {
	t.do(func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
			return none, err
		}
		png, err := chromedp.CaptureScreenshot()(ctx, to)
		if err == nil && t.folder != "-" {
			err = errors.Join(os.MkdirAll(t.folder, 0o755), os.WriteFile(filepath.Join(t.folder, "lab-"+scheme+".png"), png, 0o644))
		}
		return none, err
	})
}

func (t *tour) seen(what string) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.out, "ok:", what)
	}
}

func (t *tour) do(steps ...chromedp.Action[chromedp.Void]) {
	if t.err == nil {
		t.err = chromedp.Do(t.ctx, steps...)
	}
}

func (t *tour) click(selector string) { t.do(chromedp.Click(chromedp.CSS(selector))) }

const helpers = `
	var says = (selector) => document.querySelector(selector).textContent;
	var rows = (state) => document.querySelectorAll('tr[data-state=' + state + ']').length;
	var lines = (part) => [...$('journal').children].filter((line) => line.textContent.includes(part)).length;
`

func (t *tour) run(js string) { t.do(chromedp.Evaluate[chromedp.Void](helpers + js)) }

func (t *tour) is(js string) (ok bool) {
	if t.err == nil {
		ok, t.err = chromedp.Run(t.ctx, chromedp.Evaluate[bool](helpers+js))
	}
	return ok
}

// check fails, with all that the page says, unless js is true.
func (t *tour) check(js string) {
	if !t.is(js) && t.err == nil {
		page, err := chromedp.Run(t.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.err = errors.Join(fmt.Errorf("it is not true that %s; the page: %s", js, page), err)
	}
}

// await waits until js is true.
func (t *tour) await(js string) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(2 * time.Minute); !t.is(js) && t.err == nil; {
		<-look.C
		if time.Now().After(limit) {
			t.check(js)
		}
	}
}
