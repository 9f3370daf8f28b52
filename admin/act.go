package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

const (
	tokenHeader = "Cacheguard-Token"
	maxBody     = 64 << 10
)

// deed is what the body of a POST says.
type deed struct {
	Guard   int    `json:"guard"`   // its number
	Locker  int    `json:"locker"`  // as above
	Name    string `json:"name"`    // of a key, a tag, a Cache or a lock
	Seconds int    `json:"seconds"` // of a bypass; 0: it ends
	On      bool   `json:"on"`      // of a bypass of this process
}

// done says what was done.
type done struct {
	Done string `json:"done"`
}

// doing is something that can be done.
type doing struct {
	action Action
	do     func(ctx context.Context, h *Handler, d *deed) (string, error)
}

// doings are what can be done, by name.
var doings = map[string]doing{
	"invalidate-key": {Invalidate, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "key", d.Name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("The key %q was invalidated, on every instance.", cut(d.Name)), g.Guard.Invalidate(ctx, d.Name)
	}},
	"invalidate-tag": {Invalidate, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "tag", d.Name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Everything with the tag %q was invalidated, on every instance.", cut(d.Name)), g.InvalidateTags(ctx, d.Name)
	}},
	"invalidate-cache": {Invalidate, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "cache", d.Name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("The cache %q was invalidated, on every instance.", cut(d.Name)), g.seen.InvalidateCache(ctx, d.Name)
	}},
	"invalidate-all": {Invalidate, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "prefix", d.Name)
		if err != nil {
			return "", err
		}
		if d.Name != g.seen.Prefix { // which a person has typed, to be sure
			return "", refuse(http.StatusBadRequest, "%q is not the prefix of the guard, %q", cut(d.Name), g.seen.Prefix)
		}
		return fmt.Sprintf("Everything under %q was invalidated, on every instance.", d.Name), g.InvalidateAll(ctx)
	}},
	"bypass": {Bypass, func(_ context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "guard", "-")
		if err != nil {
			return "", err
		}
		g.Bypass(d.On)
		if d.On {
			return "This process loads without the cache, until that is ended.", nil
		}
		return "This process uses the cache, unless all instances bypass it.", nil
	}},
	"bypass-fleet": {Bypass, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		g, err := h.guardOf(d, "guard", "-")
		if err != nil {
			return "", err
		}
		const day = 24 * 60 * 60
		if d.Seconds < 0 || d.Seconds > day {
			return "", refuse(http.StatusBadRequest, "%d seconds are not between 0 and a day", d.Seconds)
		}
		if d.Seconds == 0 {
			return "All instances use the cache.", g.BypassFleet(ctx, 0)
		}
		length := time.Duration(d.Seconds) * time.Second
		return fmt.Sprintf("All instances load without the cache, for %v.", length), g.BypassFleet(ctx, length)
	}},
	"revoke": {Revoke, func(ctx context.Context, h *Handler, d *deed) (string, error) {
		if d.Locker < 0 || d.Locker >= len(h.lockers) {
			return "", refuse(http.StatusNotFound, "there is no locker %d", d.Locker)
		}
		if err := nameable("name", d.Name); err != nil {
			return "", err
		}
		l := h.lockers[d.Locker]
		if l.Revoke == nil {
			return "", refuse(http.StatusBadRequest, "a lock of a %s cannot be revoked", l.Kind)
		}
		holders, err := l.Revoke(ctx, d.Name)
		return fmt.Sprintf("The lock %q was taken away from %d holders.", cut(d.Name), holders), err
	}},
}

// guardOf is the Guard that the deed is about, if the name is one that it can be done to.
func (h *Handler) guardOf(d *deed, what, name string) (*guard, error) {
	if d.Guard < 0 || d.Guard >= len(h.guards) {
		return nil, refuse(http.StatusNotFound, "there is no guard %d", d.Guard)
	}
	return &h.guards[d.Guard], nameable(what, name)
}

// act does what the page asks for. It finishes what it has begun when the client goes.
func (h *Handler) act(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("do")
	doing, d, err := h.admit(w, r, name)
	if err != nil {
		return err
	}
	return ask(w, h.acting, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
		defer cancel()
		said, err := doing.do(ctx, h, d)
		h.logger.LogAttrs(ctx, level(err), "cacheguard: admin", attrs(r, name, d, err)...)
		return done{said}, err
	})
}

// admit refuses what is not allowed, what does not come from the page, and what cannot be read.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, name string) (doing, *deed, error) {
	doing, known := doings[name]
	token := r.Header.Get(tokenHeader)
	if err := h.cross.Check(r); err != nil {
		return doing, nil, refuse(http.StatusForbidden, "this comes from another site: %w", err)
	}
	switch {
	case !known:
		return doing, nil, refuse(http.StatusNotFound, "there is no action %q", cut(name))
	case !h.allow(r, doing.action):
		return doing, nil, refuse(http.StatusForbidden, "you may not %s", doing.action)
	case subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) != 1:
		return doing, nil, refuse(http.StatusForbidden, "the page came from another process, or from one that has ended: please load it again")
	}
	d := new(deed)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(d); err != nil {
		return doing, nil, refuse(http.StatusBadRequest, "the body: %w", err)
	}
	return doing, d, nil
}

func level(err error) slog.Level {
	if err != nil {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func attrs(r *http.Request, name string, d *deed, err error) []slog.Attr {
	all := []slog.Attr{slog.String("action", name), slog.String("name", cut(d.Name)), slog.String("from", r.RemoteAddr)}
	if d.Seconds > 0 {
		all = append(all, slog.Int("seconds", d.Seconds))
	}
	if err != nil {
		all = append(all, slog.Any("error", err))
	}
	return all
}
