package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cdc/outbox"
)

// feeds are the commands about feeds of package cdc. The instances have the connections to the databases, so their pages are asked.
type feeds struct {
	Status   feedStatus  `cmd:"" help:"How far feeds are behind, on each instance."`
	Catchup  feedCatchUp `cmd:"" help:"Return when a feed has invalidated everything that was committed before: after a migration, in a deployment's last step."`
	Report   feedReport  `cmd:"" help:"Which values were old 1, 10 and 60 seconds after changes, and how long it took until none was."`
	Triggers triggers    `cmd:"" help:"Print the SQL that makes an outbox, and the triggers of a table."`
}

// asked are the pages to ask.
type asked struct {
	Page []string `env:"CACHEGUARD_PAGES" help:"URLs of the page of package admin on instances." placeholder:"URL"`
}

var errNoPage = errors.New("which instances? Name their pages with CACHEGUARD_PAGES or --page")

// each looks at each page. The error is about the pages that did not answer.
func (a *asked) each(e *env, look func(p *paged)) error {
	if len(a.Page) == 0 {
		return errNoPage
	}
	var errs []error
	pages := e.look(a.Page)
	for i := range pages {
		if pages[i].err == nil {
			look(&pages[i].paged)
		}
		errs = append(errs, pages[i].err)
	}
	return errors.Join(errs...)
}

// instance is the name of the page's process.
func (p *paged) instance() string {
	if len(p.Guards) == 0 {
		return "?"
	}
	return p.Guards[0].Instance
}

// feed is what a page shows of a feed. Durations are in seconds.
type feed struct {
	Instance      string  `json:"instance"`
	Name          string  `json:"name"`
	Reading       bool    `json:"reading"`
	Behind        float64 `json:"behind"`
	BehindBytes   int64   `json:"behind_bytes"`
	Retained      int64   `json:"retained_bytes"`
	HeldBy        string  `json:"held_by"` // although the feed is not behind; empty: nobody
	HeldFor       float64 `json:"held_for"`
	Rows          uint64  `json:"rows"`
	Invalidations uint64  `json:"invalidations"`
	Whole         uint64  `json:"whole"`
	Unmapped      uint64  `json:"unmapped"`
	Reconnects    uint64  `json:"reconnects"`
	Problem       string  `json:"problem"`
	UnmappedAgo   float64 `json:"unmapped_ago"` // since the last row without keys; -1: that is long ago; 0: the page does not say
}

type feedStatus struct{ asked }

// shownFeeds are the feeds of all instances.
type shownFeeds struct {
	Feeds []feed `json:"feeds"`
}

func (s shownFeeds) rows() [][]string {
	rows := [][]string{{"FEED", "INSTANCE", "STATE", "BEHIND", "NOT INVALIDATED", "KEPT", "ROWS", "INVALIDATIONS", "WHOLE", "WITHOUT KEYS", "RECONNECTS", "PROBLEM"}}
	for _, f := range s.Feeds {
		state, behind := "stands by", "-"
		if f.Reading {
			state, behind = "reads", short(f.Behind)
		}
		rows = append(rows, []string{
			f.Name, f.Instance, state, behind, mib(f.BehindBytes), mib(f.Retained), count(f.Rows), count(f.Invalidations), count(f.Whole), count(f.Unmapped), count(f.Reconnects), f.trouble(),
		})
	}
	return rows
}

// trouble is what is wrong, or else who holds the log back.
func (f *feed) trouble() string {
	if f.Problem != "" || f.HeldBy == "" {
		return f.Problem
	}
	return "the log is held back by " + f.HeldBy + map[bool]string{true: ", open for " + seconds(f.HeldFor)}[f.HeldFor > 0]
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

// Run is called by kong.
func (c *feedStatus) Run(e *env) error {
	s := shownFeeds{Feeds: []feed{}}
	err := c.each(e, func(p *paged) {
		for _, f := range p.Feeds {
			f.Instance = p.instance()
			s.Feeds = append(s.Feeds, f)
		}
	})
	if errors.Is(err, errNoPage) {
		return err
	}
	if len(s.Feeds) == 0 && err == nil {
		err = errors.New("there is no feed on these instances (admin.Config.Feeds)")
	}
	reading := make(map[string]bool)
	for _, f := range s.Feeds {
		reading[f.Name] = reading[f.Name] || f.Reading
		if f.Problem != "" {
			err = errors.Join(err, fmt.Errorf("feed %s is in trouble on %s", f.Name, f.Instance))
		}
	}
	for name, is := range reading {
		if !is {
			err = errors.Join(err, fmt.Errorf("feed %s: none of these instances reads", name))
		}
	}
	return errors.Join(e.out.print(s), err)
}

type feedCatchUp struct {
	asked

	Feed    string        `arg:"" help:"Its name in admin.Config.Feeds."`
	Timeout time.Duration `default:"5m" help:"How long to wait."`
}

// caughtUp is a feed that has caught up.
type caughtUp struct {
	Feed    string  `json:"feed"`
	Seconds float64 `json:"seconds"` // it took
}

func (c caughtUp) rows() [][]string {
	return [][]string{{"feed " + c.Feed + " has caught up, in " + seconds(c.Seconds)}}
}

// Run is called by kong. One instance is enough: it asks how far the database says that whichever reads has come.
func (c *feedCatchUp) Run(e *env) error {
	if len(c.Page) == 0 {
		return errNoPage
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	began := time.Now()
	var errs []error
	for _, page := range c.Page {
		var done struct{ Done string }
		err := askPage(ctx, http.MethodPost, page, url.Values{"do": {"catch-up"}, "feed": {c.Feed}}.Encode(), &done)
		if err == nil {
			return e.out.print(caughtUp{c.Feed, time.Since(began).Seconds()})
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, fmt.Errorf("feed %s has not caught up", c.Feed))...)
}

type triggers struct {
	Dialect string   `enum:"postgres,mysql,sqlite" help:"postgres, mysql or sqlite." required:""`
	Table   string   `arg:"" help:"The table, as cdc.Table names it."`
	Columns []string `arg:"" help:"The columns that Table.Changed asks for: the primary key's, and what tags are made of."`
}

// statements are SQL.
type statements struct {
	Statements []string `json:"statements"`
}

// rows are unused: as text, statements are printed as they are, and not as cells.
func (s statements) rows() [][]string { return nil }

// Run is called by kong.
func (c *triggers) Run(e *env) error {
	all := append(outbox.CreateTable(outbox.Dialect(c.Dialect)), outbox.Triggers(outbox.Dialect(c.Dialect), c.Table, c.Columns...)...)
	if e.out.json {
		return e.out.print(statements{all})
	}
	text := strings.Join(all, ";\n") + ";"
	if c.Dialect == string(outbox.MySQL) { // its command-line client would end a trigger at the first semicolon
		text = "DELIMITER //\n" + strings.Join(all, "\n//\n") + "\n//\nDELIMITER ;"
	}
	_, err := fmt.Fprintln(e.out.to, text)
	return err
}
