package plugins

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	fiberlib "github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	recovering "github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/plugins/fiber"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// answer is the status and the body of what a Fiber app answers to a GET.
func answer(t *testing.T, app *fiberlib.App, path string) string {
	t.Helper()
	resp, err := app.Test(httptest.NewRequest(http.MethodGet, path, nil), -1)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.Status + " " + string(body)
}

func TestFibersPagesShowWhatACacheHas(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	caches := newCaches(t, f, cacheguard.CacheConfig[int64, fiber.Product]{
		Name: "product",
		Load: func(_ context.Context, id int64) (fiber.Product, error) {
			f.loads.Add(1)
			switch id {
			case 404:
				return fiber.Product{}, cacheguard.ErrNotFound
			case 500:
				return fiber.Product{}, errors.New("the database's address is 192.0.2.1")
			}
			return fiber.Product{ID: id, Name: "boot"}, nil
		},
	})
	for _, products := range caches {
		f.stored(t)
		app := fiberlib.New()
		app.Get("/products/:id", fiber.Page(products))
		for path, want := range map[string]string{
			"/products/42": `200 OK {"ID":42,"Name":"boot"}`, "/products/404": "404 Not Found Not Found", "/products/boot": "404 Not Found Not Found",
		} {
			expect.Equal(t, path, answer(t, app, path), want)
		}
	}
	expect.Equal(t, "loads", f.loads.Load(), 2)
	app := fiberlib.New()
	app.Get("/products/:id", fiber.Page(caches[0]))
	expect.Equal(t, "a failure", answer(t, app, "/products/500"), "503 Service Unavailable Service Unavailable")
}

// What Fiber's adaptors make of the HTTP middleware, which docs/plugging-in.md reports.
func TestTheMiddlewareFitsFiberBehindNetHTTPOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	pages, err := middleware.New(f.guards[0], middleware.Config{DefaultTTL: time.Minute})
	must(t, err)
	boots := func(c *fiberlib.Ctx) error { return c.SendString("boots") }

	inside := fiberlib.New()
	inside.Use(recovering.New(), adaptor.HTTPMiddleware(pages.Handler)) // the adaptor panics on the contexts of loads
	inside.Get("/inside", boots)
	got, _, _ := strings.Cut(answer(t, inside, "/inside"), " ")
	expect.Equal(t, "status within Fiber", got, "500")

	app := fiberlib.New()
	app.Get("/behind", boots)
	behind := pages.Handler(adaptor.FiberApp(app))
	for _, want := range []string{"cacheguard; fwd=uri-miss", "cacheguard; hit"} {
		w := httptest.NewRecorder()
		behind.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/behind", nil))
		expect.Equal(t, "page", w.Body.String(), "boots")
		status := w.Header().Get("Cache-Status")
		expect.Equal(t, status+" begins with "+want, strings.HasPrefix(status, want), true)
		f.stored(t)
	}
}
