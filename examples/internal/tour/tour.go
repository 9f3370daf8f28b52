// Package tour drives a page of an example with Chromium, and checks what it shows. It waits for facts on the page, never for a time.
package tour

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
)

// A Tour goes through a page. After an error it does nothing any more.
type Tour struct {
	ctx     context.Context //nolint:containedctx // of the browser's tab
	out     io.Writer
	folder  string // for the pictures; -: none
	helpers string // JavaScript before what is run
	err     error
}

// Browse runs scenes in a new Chromium. The folder is for pictures; - is none.
func Browse(ctx context.Context, out io.Writer, folder, helpers string, scenes func(*Tour)) error {
	browser := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
		}
	}
	if browser == "" {
		return errors.New("-tour: please install chromium (apt-get install chromium), or Chrome")
	}
	profile, err := os.MkdirTemp("", "cacheguard-tour-")
	if err != nil {
		return err
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(browser), chromedp.UserDataDir(profile), chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true))
	defer stop()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	t := &Tour{ctx: ctx, out: out, folder: folder, helpers: helpers}
	scenes(t)
	return errors.Join(t.err, chromedp.Cancel(ctx), os.RemoveAll(profile))
}

// Going reports whether all went well so far.
func (t *Tour) Going() bool { return t.err == nil }

// Open opens a page in a window of that size.
func (t *Tour) Open(url string, width, height int64) {
	t.Do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
}

// Resize gives the window another size.
func (t *Tour) Resize(width, height int64) { t.Do(chromedp.EmulateViewport(width, height)) }

// Prefer has the page in light or dark.
func (t *Tour) Prefer(scheme string) {
	t.Do(func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
		return none, err
	})
}

// Picture writes NAME.png of what the window shows.
func (t *Tour) Picture(name string) {
	t.Do(func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		png, err := chromedp.CaptureScreenshot()(ctx, to)
		if err == nil && t.folder != "-" {
			err = errors.Join(os.MkdirAll(t.folder, 0o755), os.WriteFile(filepath.Join(t.folder, name+".png"), png, 0o644))
		}
		return none, err
	})
}

// Seen prints what was seen, if all went well.
func (t *Tour) Seen(what string) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.out, "ok:", what)
	}
}

// Do does steps.
func (t *Tour) Do(steps ...chromedp.Action[chromedp.Void]) {
	if t.err == nil {
		t.err = chromedp.Do(t.ctx, steps...)
	}
}

// Click clicks what the selector of CSS names.
func (t *Tour) Click(selector string) { t.Do(chromedp.Click(chromedp.CSS(selector))) }

// Press presses a button by the keyboard. A click is for a place, where something else may be once a page has changed that shows more
// and less all the time.
func (t *Tour) Press(selector string) {
	t.Do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent("\r"))
}

// Run runs JavaScript.
func (t *Tour) Run(js string) { t.Do(chromedp.Evaluate[chromedp.Void](t.helpers + js)) }

// Is reports whether JavaScript is true.
func (t *Tour) Is(js string) (ok bool) {
	if t.err == nil {
		ok, t.err = chromedp.Run(t.ctx, chromedp.Evaluate[bool](t.helpers+js))
	}
	return ok
}

// Check fails, with all that the page says, unless js is true.
func (t *Tour) Check(js string) {
	if !t.Is(js) && t.err == nil {
		page, err := chromedp.Run(t.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.err = errors.Join(fmt.Errorf("it is not true that %s; the page: %s", js, page), err)
	}
}

// Await waits until js is true.
func (t *Tour) Await(js string) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(2 * time.Minute); !t.Is(js) && t.err == nil; {
		<-look.C
		if time.Now().After(limit) {
			t.Check(js)
		}
	}
}
