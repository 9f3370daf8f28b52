package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// invalidate removes entries.
type invalidate struct {
	sure
	asked

	Keys  []string `arg:"" help:"Keys, as the service names them: without the prefix." optional:""`
	Tag   []string `help:"Remove what carries the tag." placeholder:"TAG" sep:"none"`
	Cache []string `help:"Remove all that the service has in the Cache of this name." placeholder:"NAME" sep:"none"`
	All   bool     `help:"Remove everything under the prefix."`
}

// invalidated is what was removed.
type invalidated struct {
	Prefix string   `json:"prefix"`
	Keys   []string `json:"keys"`
	Tags   []string `json:"tags"`
	Caches []string `json:"caches"`
	All    bool     `json:"all"`

	Missing []string `json:"missing,omitempty"`     // keys that Redis had nothing of
	Unused  []string `json:"unused_tags,omitempty"` // tags that no entry has
	Notes   []string `json:"notes,omitempty"`       // what of all this no page knows
}

func (r invalidated) rows() (rows [][]string) {
	for _, key := range r.Keys {
		row := []string{"invalidated", key}
		if slices.Contains(r.Missing, key) {
			row = append(row, "nothing was there")
		}
		rows = append(rows, row)
	}
	for _, tag := range r.Tags {
		row := []string{"invalidated tag", tag}
		if slices.Contains(r.Unused, tag) {
			row = append(row, "nothing had it")
		}
		rows = append(rows, row)
	}
	for _, name := range r.Caches {
		rows = append(rows, []string{"invalidated cache", name})
	}
	if r.All {
		rows = append(rows, []string{"invalidated all of", r.Prefix})
	}
	return append(rows, noted(r.Notes)...)
}

// longestTag is what package cacheguard takes, in bytes.
const longestTag = 512

// Validate is called by kong.
func (c *invalidate) Validate() error {
	if len(c.Keys) == 0 && len(c.Tag) == 0 && len(c.Cache) == 0 && !c.All {
		return errors.New("name keys, a --tag, a --cache or --all")
	}
	if slices.Contains(slices.Concat(c.Keys, c.Tag, c.Cache), "") {
		return errors.New("a key, a --tag or a --cache is empty")
	}
	if slices.ContainsFunc(c.Tag, func(tag string) bool { return len(tag) > longestTag }) {
		return fmt.Errorf("a --tag is longer than %d bytes", longestTag)
	}
	return nil
}

// Run is called by kong.
func (c *invalidate) Run(e *env) error {
	if c.All {
		if err := c.confirm(e, "Invalidate everything under %q, on every instance?", e.all.Prefix); err != nil {
			return err
		}
	}
	guard, err := e.guard()
	if err != nil {
		return err
	}
	defer guard.Close()
	kinds, err := kindsOf(guard, c.Cache)
	if err != nil {
		return err
	}
	told := untold{channel: channel(e)}
	e.rdb.AddHook(after(told.note))
	var none, unused, meant []string
	var unseen, unasked error
	e.patiently("Redis, to invalidate", func() {
		none, unseen = missing(e, guard, c.Keys)
		unused, unasked = unusedTags(e, c.Tag)
		meant = ofPages(e, unused)
		err = c.write(e, guard, kinds)
	})
	if err != nil {
		return err
	}
	notes := slices.Concat(e.notes, c.unknown(e, c.Keys, c.Cache, c.Tag), ofSchemes(none), meant)
	if unseen = errors.Join(unseen, unasked); unseen != nil {
		notes = append(notes, "whether anything was there is not known: "+unseen.Error())
	}
	return errors.Join(e.out.print(invalidated{
		Missing: none, Unused: unused, Notes: notes,
		Prefix: e.all.Prefix, Keys: append([]string{}, c.Keys...), Tags: append([]string{}, c.Tag...),
		Caches: append([]string{}, c.Cache...), All: c.All,
	}), told.err())
}

// write invalidates.
func (c *invalidate) write(e *env, guard *cacheguard.Guard, kinds []*cacheguard.Cache[string, []byte]) (err error) {
	if len(c.Keys) > 0 {
		err = guard.Invalidate(e.ctx, c.Keys...)
	}
	if len(c.Tag) > 0 {
		err = errors.Join(err, guard.InvalidateTags(e.ctx, c.Tag...))
	}
	for _, kind := range kinds {
		err = errors.Join(err, kind.InvalidateAll(e.ctx))
	}
	if c.All {
		err = errors.Join(err, guard.InvalidateAll(e.ctx))
	}
	return err
}

var errNoName = errors.New("nothing was done: --cache")

// kindsOf makes Caches of the names. What their keys and values are does not matter for what is to be removed.
func kindsOf(guard *cacheguard.Guard, names []string) (all []*cacheguard.Cache[string, []byte], err error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		kind, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, []byte]{
			Name: name, Load: func(context.Context, string) ([]byte, error) { return nil, cacheguard.ErrNotFound }, // nobody asks
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoName, err)
		}
		all = append(all, kind)
	}
	return all, nil
}

// bypass turns the cache off for a while.
type bypass struct {
	sure
	asked

	For time.Duration `arg:"" help:"How long, at most 24h; 0 turns the cache on again."`
}

// bypassed is what was said to all instances.
type bypassed struct {
	Prefix  string  `json:"prefix"`
	Seconds float64 `json:"seconds"` // 0: the bypass is over

	Notes []string `json:"notes,omitempty"` // that no page knows the prefix
}

func (r bypassed) rows() [][]string {
	if r.Seconds == 0 {
		return append([][]string{{"the cache is on", r.Prefix}}, noted(r.Notes)...)
	}
	return append([][]string{{"bypassed", r.Prefix, "for " + time.Duration(r.Seconds*float64(time.Second)).String()}}, noted(r.Notes)...)
}

// Run is called by kong.
func (c *bypass) Run(e *env) error {
	if c.For != 0 {
		if err := c.confirm(e, "Have every instance of %q load without the cache for %v?", e.all.Prefix, c.For); err != nil {
			return err
		}
	}
	guard, err := e.guard()
	if err != nil {
		return err
	}
	defer guard.Close()
	e.patiently("Redis, to say so to all instances", func() { err = guard.BypassFleet(e.ctx, c.For) })
	if err != nil {
		return err
	}
	return e.out.print(bypassed{Prefix: e.all.Prefix, Seconds: c.For.Seconds(), Notes: slices.Concat(e.notes, c.unknown(e, nil, nil, nil))})
}
