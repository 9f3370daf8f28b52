package admin

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/watch/observe"
)

// Action is something that the page can do.
type Action string

// The actions.
const (
	Invalidate Action = "invalidate" // keys, tags, a Cache, or everything under a Prefix
	Bypass     Action = "bypass"     // turn the cache off, for this process or for all, and on again
	Revoke     Action = "revoke"     // take a lock away from its holders; not that of a Quorum, which has no Revoke
)

// Locker is a *mutex.Locker, a *mutex.Quorum, a *rwlock.Locker or a *semaphore.Locker. Others are not shown.
type Locker interface{ Close() error }

// Pages is a *middleware.Cache. Others are not shown.
type Pages interface {
	InvalidatePrefix(ctx context.Context, prefix string) error
}

// Config says what a Handler shows, and what it lets people do. Elements of a list that are nil are left out.
type Config struct {
	Guards  []*cacheguard.Guard
	Lockers []Locker
	Pages   []Pages

	// Feeds and Reports come from package cdc, under names that people know.
	Feeds   map[string]Feed
	Reports map[string]*cdc.Report

	// Allow reports whether the request may do this. Your authentication says who sent it. It is also called for the page itself, which has
	// no forms for what is not allowed. Default: nobody may do anything but look.
	Allow func(r *http.Request, action Action) bool

	// Hosts are names, without a port, under which requests may ask for the page, besides addresses such as 127.0.0.1 and localhost.
	// Others get status 421: a site that someone on your network visits could make its own name stand for this server, and would then read
	// the page and act with it, as from the same origin. "*" lets all names in, for a Handler that nobody reaches without your
	// authentication. Default: none.
	Hosts []string

	// Logger gets a record of each action, with its target, the address that it came from, and its result. Default: none.
	Logger *slog.Logger
}

// New returns a Handler that shows the guards, and lets nobody change anything. For more, see NewHandler.
func New(guards ...*cacheguard.Guard) *Handler { return NewHandler(Config{Guards: guards}) }

// Handler is an http.Handler. It is safe for concurrent use, and needs no Close. It may outlive what it shows.
type Handler struct {
	allow  func(*http.Request, Action) bool
	logger *slog.Logger
	hosts  []string
	token  string
	cross  *http.CrossOriginProtection
	busy   chan struct{} // taken by those who look something up
	acting chan struct{} // the same for actions

	catching chan struct{} // the same for those who wait for a feed

	guards  []guard
	lockers []observe.Locker
	pages   []observe.Pages
	feeds   map[string]Feed
	reports map[string]*cdc.Report
	shown   shown
}

// guard is a Guard, and what it shows.
type guard struct {
	*cacheguard.Guard

	seen observe.Guard
	view *view
}

// mostBusy is how many look-ups run at once, and how many actions: those who look must not keep others from acting.
const mostBusy = 8

// NewHandler returns a Handler with the Config.
func NewHandler(c Config) *Handler {
	h := &Handler{
		allow: c.Allow, logger: c.Logger, hosts: slices.Clone(c.Hosts), token: rand.Text(), cross: http.NewCrossOriginProtection(),
		busy: make(chan struct{}, mostBusy), acting: make(chan struct{}, mostBusy), catching: make(chan struct{}, mostBusy),
		feeds: maps.Clone(c.Feeds), reports: maps.Clone(c.Reports),
	}
	if h.allow == nil {
		h.allow = func(*http.Request, Action) bool { return false }
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	for _, g := range c.Guards {
		if seen, _ := observe.Look[observe.Guard](g); g != nil {
			v := newView(time.Now)
			seen.Viewer.CompareAndSwap(nil, &v)
			h.guards = append(h.guards, guard{g, seen, (*seen.Viewer.Load()).(*view)}) //nolint:forcetypeassert // it is this package's alone
		}
	}
	for _, l := range c.Lockers {
		if seen, _ := observe.Look[observe.Locker](l); seen.Held != nil {
			h.lockers = append(h.lockers, seen)
		}
	}
	for _, p := range c.Pages {
		if seen, _ := observe.Look[observe.Pages](p); seen.Read != nil {
			h.pages = append(h.pages, seen)
		}
	}
	maps.DeleteFunc(h.feeds, func(_ string, f Feed) bool { return f == nil })
	maps.DeleteFunc(h.reports, func(_ string, r *cdc.Report) bool { return r == nil })
	h.shown.begin(h)
	return h
}
