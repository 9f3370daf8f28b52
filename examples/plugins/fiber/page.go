// Package fiber puts a cache behind a page of Fiber. Fiber is built on fasthttp, whose requests and responses are not those of net/http, so the HTTP middleware does not
// fit in front of its handlers: adaptor.HTTPMiddleware panics on the first request. What fits is a cache of what the page shows, as here. An app that may give up
// fasthttp's server can run behind net/http's, where middleware.Cache.Handler(adaptor.FiberApp(app)) caches its pages.
//
// fasthttp uses two things again when the handler has returned, while a load may still need them: strings such as c.Params, so copy a key that is one
// (utils.CopyString), and c.Context(), so give the cache c.UserContext().
package fiber

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/cacheguard/go/cacheguard"
)

// Product is what the page shows.
type Product struct {
	ID   int64
	Name string
}

// patience is how long a page may take. Fiber does not say when a client has left.
const patience = 5 * time.Second

// Page shows a product: app.Get("/products/:id", Page(products)).
func Page(products *cacheguard.Cache[int64, Product]) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := c.ParamsInt("id")
		if err != nil {
			return fiber.ErrNotFound
		}
		ctx, cancel := context.WithTimeout(c.UserContext(), patience)
		defer cancel()
		p, err := products.Get(ctx, int64(id))
		switch {
		case errors.Is(err, cacheguard.ErrNotFound):
			return fiber.ErrNotFound
		case err != nil:
			return fiber.ErrServiceUnavailable // the cause is for the log, not for clients
		}
		return c.JSON(p)
	}
}
