package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/cdc"
)

// Feed is a *Feed of cdc/postgres, cdc/mysql or cdc/outbox.
type Feed interface {
	Stats() cdc.Stats
	CatchUp(ctx context.Context) error
}

// feedState is a feed of package cdc.
type feedState struct {
	Name          string  `json:"name"`
	Reading       bool    `json:"reading"`      // false: it stands by
	Behind        float64 `json:"behind"`       // of one that reads
	BehindBytes   int64   `json:"behind_bytes"` // 0 for databases that do not say, as what follows
	Retained      int64   `json:"retained_bytes"`
	HeldBy        string  `json:"held_by"` // who keeps the log although the feed is not behind; empty: nobody
	HeldFor       float64 `json:"held_for"`
	Rows          uint64  `json:"rows"`
	Transactions  uint64  `json:"transactions"`
	Invalidations uint64  `json:"invalidations"`
	Whole         uint64  `json:"whole"`
	Unmapped      uint64  `json:"unmapped"` // rows without keys
	Reconnects    uint64  `json:"reconnects"`
	Problem       string  `json:"problem"`      // empty: there is none
	UnmappedAgo   float64 `json:"unmapped_ago"` // since the last row without keys; -1: none is worth a word
}

// reportState is what a Report of package cdc has found.
type reportState struct {
	Name    string       `json:"name"`
	Rows    uint64       `json:"rows"`
	Skipped uint64       `json:"skipped"`
	Failed  uint64       `json:"failed"`
	P50     float64      `json:"p50"`
	P99     float64      `json:"p99"`
	Longest float64      `json:"longest"`
	After   []looksState `json:"after"`
	Old     []oldState   `json:"old"` // the last ones first
}

type looksState struct {
	After      float64 `json:"after"`
	Reads      uint64  `json:"reads"`
	Old        uint64  `json:"old"`
	PerMillion float64 `json:"old_per_million"`
}

type oldState struct {
	Table     string   `json:"table"`
	Key       string   `json:"key"`
	Cut       bool     `json:"cut"` // the key is longer, or not text
	Committed string   `json:"committed"`
	After     float64  `json:"after"`
	Why       string   `json:"why"`
	Epochs    []string `json:"epochs"`
}

func feedsOf(feeds map[string]Feed) []feedState {
	all := []feedState{}
	for _, name := range slices.Sorted(maps.Keys(feeds)) {
		s := feeds[name].Stats()
		one := feedState{
			Name: name, Reading: s.Reading, Behind: s.Behind.Seconds(), BehindBytes: s.BehindBytes, Retained: s.Retained, Rows: s.Rows,
			Transactions: s.Transactions, Invalidations: s.Invalidations, Whole: s.Whole, Unmapped: s.Unmapped, Reconnects: s.Reconnects,
			HeldFor: s.HeldFor.Seconds(), UnmappedAgo: -1,
		}
		if ago := time.Since(s.UnmappedAt); ago < mistaken {
			one.UnmappedAgo = ago.Seconds()
		}
		one.HeldBy, _ = shorten(s.HeldBy, longestShown)
		if s.Err != nil {
			one.Problem, _ = shorten(s.Err.Error(), longestShown)
		}
		all = append(all, one)
	}
	return all
}

func reportsOf(reports map[string]*cdc.Report) []reportState {
	all := []reportState{}
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		all = append(all, reportOf(name, reports[name].Consistency()))
	}
	return all
}

func reportOf(name string, c cdc.Consistency) reportState {
	one := reportState{
		Name: name, Rows: c.Rows, Skipped: c.Skipped, Failed: c.Failed, P50: c.P50.Seconds(), P99: c.P99.Seconds(), Longest: c.Longest.Seconds(),
		After: []looksState{}, Old: []oldState{},
	}
	for _, l := range c.After {
		one.After = append(one.After, looksState{l.After.Seconds(), l.Reads, l.Old, l.PerMillion()})
	}
	for _, o := range slices.Backward(c.Old) {
		key, cut := shorten(o.Key, longestShown)
		one.Old = append(one.Old, oldState{o.Table, key, cut, o.Committed.UTC().Format(time.RFC3339), o.After.Seconds(), o.Why, append([]string{}, o.Epochs...)})
	}
	return one
}

// longestCatchUp is how long a request may wait for a feed.
const longestCatchUp = time.Hour

// catchUp answers when a feed has caught up, or when the client goes. It is not among the actions, as it does nothing to the cache, and
// no page asks for it: requests of browsers from elsewhere are refused all the same.
func (h *Handler) catchUp(w http.ResponseWriter, r *http.Request) error {
	if err := h.cross.Check(r); err != nil {
		return refuse(http.StatusForbidden, "this comes from another site: %w", err)
	}
	name := r.URL.Query().Get("feed")
	feed, there := h.feeds[name]
	if !there {
		return refuse(http.StatusNotFound, "there is no feed %q", cut(name))
	}
	return ask(w, h.catching, func() (any, error) {
		ctx, cancel := context.WithTimeout(r.Context(), longestCatchUp)
		defer cancel()
		return done{"The feed has caught up: everything that was committed before is invalidated."}, feed.CatchUp(ctx)
	})
}
