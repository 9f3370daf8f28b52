package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWatchSamplesWhatTheCachesOfAnInstanceDo(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: prefix, Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "one", nil },
	})
	expect.ErrorIs(t, err)
	page := httptest.NewServer(admin.New(guard))
	t.Cleanup(page.Close)
	cmd := command(t.Context(), at(shared), "--prefix", prefix, "--json", "watch", "--every", "100ms", "--page", page.URL)
	out, err := cmd.StdoutPipe()
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, cmd.Start())
	invalidated, took, most := 0, 0.0, ""
	for lines := bufio.NewScanner(out); invalidated == 0 || took == 0; {
		_, err := products.Get(t.Context(), 1)
		expect.ErrorIs(t, err)
		expect.ErrorIs(t, products.Invalidate(t.Context(), 1))
		if !lines.Scan() {
			t.Fatal("it has ended: ", lines.Err())
		}
		var s sampled
		expect.ErrorIs(t, json.Unmarshal(lines.Bytes(), &s))
		switch {
		case s.Cache == "product" && s.Instance == "shop-1":
			expect.Equal(t, "invalidations of an instance", s.Invalidated, 0) // they are the fleet's
			took += s.Gets
		case s.Cache == "product" && s.Instance == "":
			invalidated += s.Invalidated
			most += s.Most
		}
	}
	if !strings.HasPrefix(most, "product:1") {
		t.Errorf("most of them were about %q", most)
	}
	expect.ErrorIs(t, cmd.Process.Signal(os.Interrupt))
	expect.ErrorIs(t, cmd.Wait())
}

func TestWatchCountsInvalidationsByCacheWithoutAPage(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	cmd := command(t.Context(), at(shared), "--prefix", prefix, "watch", "--every", "100ms", "--count", "1000000")
	out, err := cmd.StdoutPipe()
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, cmd.Start())
	found := make(chan string, 1)
	go func() { // owner: the test; stop: the end of the output; joined below
		defer close(found)
		if lines := bufio.NewScanner(out); lines.Scan() {
			found <- lines.Text()
		}
	}()
	for line := ""; line == ""; {
		expect.ErrorIs(t, guard.Invalidate(t.Context(), "price:1"))
		select {
		case line = <-found:
			if !strings.Contains(line, "price  invalidated ") || !strings.Contains(line, " of them price:1") {
				t.Error(line)
			}
		default:
		}
	}
	expect.ErrorIs(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	<-found
}

func TestAPageThatIsNoneIsAnErrorWithoutItsPassword(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for page, says := range map[string]string{
		strings.Replace(other.URL, "http://", "http://u:hidden@", 1): "404", "http://u:hidden@127.0.0.1:1/": "refused", "hidden": "no URL",
		"http://u:123/hidden@127.0.0.1:1/": "no URL", "http://u:123?hidden@127.0.0.1:1/": "no URL", "http://u:123#hidden@127.0.0.1:1/": "no URL",
		"http://u@hidden:123/x@127.0.0.1:1/": "no URL",
	} {
		r := ctl(t, at(shared), "watch", "--every", "100ms", "--count", "1", "--page", page)
		r.want(t, failed, says)
		if strings.Contains(r.out+r.errors, "hidden") {
			t.Errorf("the password is printed: %s%s", r.out, r.errors)
		}
	}
}

func TestWhatAPageSaysLooksLikeNoLineOfItsOwn(t *testing.T) {
	t.Parallel()
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, `{"error":"no\ncacheguardctl: all is well\u001b[2J"}`) // the command shows it
	}))
	t.Cleanup(hostile.Close)
	r := ctl(t, at(shared), "watch", "--every", "100ms", "--count", "1", "--page", hostile.URL)
	r.want(t, failed, "teapot")
	if strings.Contains(r.errors, "\ncacheguardctl: all") || strings.Contains(r.errors, "\x1b") {
		t.Errorf("it looks like a line: %s", r.errors)
	}
}
