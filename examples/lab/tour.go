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
		return errors.Join(tour{out, folder}.run(ctx, url), chromedp.Cancel(ctx))
	}), os.RemoveAll(profile))
}

// tour goes through scenes. They wait for facts on the page, never for a time.
type tour struct {
	out    io.Writer
	folder string // for the pictures
}

// step is what the tour does, or waits for.
type step = chromedp.Action[chromedp.Void]

func (t tour) run(ctx context.Context, url string) error {
	for _, scene := range []struct {
		name  string
		steps []step
	}{
		{"the page opens", []step{
			chromedp.EmulateViewport(1280, 706), chromedp.Navigate(url), await("!!now && says('#link') === 'live'"),
			do("$('ttl').value = 600, $('ttl').dispatchEvent(new Event('change'))"), await("now.settings.ttl === 600"),
		}},
		{"by hand, about as many queries as callers", []step{stampede("hand", 1, "queries >= 120", false)}},
		{"with singleflight, one query for each instance", []step{stampede("flight", 4, "queries > 1 && queries <= 5", false)}},
		{"with cacheguard, one query", []step{stampede("guard", 4, "queries === 1", true)}},
		{"one instance loads and the others wait", []step{
			click("#slow"), await("now.settings.slow"), t.pictures("rows('loading') === 1 && rows('waiting') === 4 && says('#busy') === '1' && says('td:nth-child(4)') === '0'"),
			await("now.episode === null && now.hits === 1"),
		}},
		{"one other takes over from an instance that dies in mid-load", []step{
			click("#expire"), await("rows('loading') === 1"), click("tr[data-state=loading] button"), await("rows('killed') === 1"),
			await("lines('took over') === 1 && now.episode === null && now.hits === 1"),
			click("#slow"), await("!now.settings.slow"), click("tr[data-state=killed] button"), await("rows('serving') === 5"),
		}},
		{"while Redis is down nobody fails, and an instance makes one query at a time", []step{
			do("failed = says('#failed')"), click("#down"), await("says('#redis') === 'killed'"),
			await("now.instances.every((one) => one.answers.bypassed > 0) && now.episode.queries > 10"),
			check("now.episode.peak <= 5 && says('#failed') === failed"), click("#down"), await("says('#redis') === 'up'"),
			await("now.episode === null && now.hits === 1"), check("says('#failed') === failed"),
		}},
	} {
		if err := chromedp.Do(ctx, scene.steps...); err != nil {
			return fmt.Errorf("%s: %w", scene.name, err)
		}
		if _, err := fmt.Fprintln(t.out, "ok:", scene.name); err != nil {
			return err
		}
	}
	return nil
}

// stampede expires the hot key with a mode, until the card has so often shown what is expected of the queries. Only a mode that
// promises nothing may show something else now and then: it depends on how many call at the same moment.
func stampede(mode string, times int, expected string, promised bool) step {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		choose := chromedp.Steps(click("[value="+mode+"]"), await(fmt.Sprintf("now.settings.mode === '%s' && now.hits === 1", mode)))
		if _, err = choose(ctx, t); err != nil {
			return none, err
		}
		card := fmt.Sprintf("says('[data-mode=%s] b')", mode)
		for others := 0; times > 0; {
			expire := chromedp.Steps(do("before = lines('One expiry')"), click("#expire"), await("lines('One expiry') > before && now.hits === 1"))
			if _, err = expire(ctx, t); err != nil {
				return none, err
			}
			if _, err = check("(queries => "+expected+")(Number("+card+"))")(ctx, t); err == nil {
				times--
				continue
			}
			if others++; promised || others > 5 {
				queries, terr := chromedp.Evaluate[string](helpers+card)(ctx, t)
				return none, errors.Join(fmt.Errorf("the page shows %s queries: %w", queries, err), terr)
			}
		}
		return none, nil
	}
}

// pictures expires the hot key until the page has come to a halt with the fact in it.
func (t tour) pictures(fact string) step {
	return func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		for {
			halt := chromedp.Steps(click("#expire"), await(fact), click("#pause"))
			if _, err := halt(ctx, to); err != nil {
				return none, err
			}
			if _, err := check(fact)(ctx, to); err == nil {
				return chromedp.Steps(t.picture("light"), t.picture("dark"), click("#pause"))(ctx, to)
			}
			if _, err := chromedp.Steps(click("#pause"), await("now.episode === null && now.hits === 1"))(ctx, to); err != nil {
				return none, err
			}
		}
	}
}

func (t tour) picture(scheme string) step {
	return func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
			return none, err
		}
		png, err := chromedp.CaptureScreenshot()(ctx, to)
		if err == nil && t.folder != "-" {
			err = errors.Join(os.MkdirAll(t.folder, 0o755), os.WriteFile(filepath.Join(t.folder, "lab-"+scheme+".png"), png, 0o644))
		}
		return none, err
	}
}

const helpers = `
	var says = (selector) => document.querySelector(selector).textContent;
	var rows = (state) => document.querySelectorAll('tr[data-state=' + state + ']').length;
	var lines = (part) => [...$('journal').children].filter((line) => line.textContent.includes(part)).length;
`

func click(selector string) step { return chromedp.Click(chromedp.CSS(selector)) }

func do(js string) step { return chromedp.Evaluate[chromedp.Void](helpers + js) }

// check fails unless js is true.
func check(js string) step {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		ok, err := chromedp.Evaluate[bool](helpers+js)(ctx, t)
		if err == nil && !ok {
			err = fmt.Errorf("it is not true that %s", js)
		}
		return none, err
	}
}

// await waits until js is true.
func await(js string) step {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		patience, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for {
			if _, err = check(js)(ctx, t); err == nil {
				return none, nil
			}
			select {
			case <-look.C:
			case <-patience.Done():
				page, _ := chromedp.Evaluate[string]("document.body.innerText")(ctx, t) // to say more
				return none, fmt.Errorf("%w; the page: %s", err, page)
			}
		}
	}
}
