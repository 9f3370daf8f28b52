package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/epoch"
	journal "github.com/cacheguard/go/internal/watch" // report is a result here
)

// unknown says what of a command no page of the instances knows: a name that is mistyped looks like success otherwise. Without pages it
// knows nothing, and says nothing. A page that does not answer may know what the others do not.
func (a *asked) unknown(e *env, keys, caches, tags []string) (notes []string) {
	if len(a.Page) == 0 {
		return nil
	}
	var guards []*pagedGuard
	read := 0
	err := a.each(e, func(p *paged) { guards, read = append(guards, p.of(e.all.Prefix)...), read+1 })
	if err != nil {
		why := strings.ReplaceAll(err.Error(), "\n", "; ")
		if read == 0 {
			return []string{"no page could be read, so whether instances have what was named, and use this Redis, is not known: " + why}
		}
		notes = append(notes, "not all instances were asked: "+why)
	}
	if len(guards) == 0 {
		return append(notes, noGuard(e))
	}
	for _, key := range keys {
		if !slices.ContainsFunc(guards, func(g *pagedGuard) bool { return g.asksFor(key) }) {
			notes = append(notes, fmt.Sprintf("no page shows a Cache that the key %q could be of", key))
		}
	}
	for _, name := range caches {
		if !slices.ContainsFunc(guards, func(g *pagedGuard) bool { return g.has(name) }) {
			notes = append(notes, fmt.Sprintf("no page shows a Cache with the Name %q", name))
		}
	}
	for _, tag := range tags {
		if !slices.ContainsFunc(guards, func(g *pagedGuard) bool { return g.loads(tag) }) {
			notes = append(notes, fmt.Sprintf("no load of these instances has had the tag %q, or one like it", tag))
		}
	}
	return notes
}

func noGuard(e *env) string {
	var have []string
	for _, p := range e.looks {
		for _, g := range p.Guards {
			have = append(have, strconv.Quote(g.Prefix))
		}
	}
	slices.Sort(have)
	there := strings.Join(slices.Compact(have), ", ")
	return fmt.Sprintf("no page shows a Guard with the Prefix %q: is --prefix right? They have %s", e.all.Prefix, cmp.Or(there, "none"))
}

// noneHas reports whether pages answer, and none of these has the Prefix.
func (e *env) noneHas(pages []string) (none bool) {
	for _, p := range e.look(pages) {
		if len(p.of(e.all.Prefix)) > 0 {
			return false
		}
		none = none || p.err == nil
	}
	return none
}

// noted are the lines of what is to be said of a result.
func noted(notes []string) (rows [][]string) {
	for _, note := range notes {
		rows = append(rows, []string{"note: " + note})
	}
	return rows
}

// has reports whether the Guard has a Cache of the name.
func (g *pagedGuard) has(name string) bool {
	return slices.ContainsFunc(g.Caches, func(c pagedCache) bool { return c.Name == name })
}

// asksFor reports whether a Cache has the key, or a load has had one of the same kind. A page of an earlier version does not say.
func (g *pagedGuard) asksFor(key string) bool {
	name, _, named := strings.Cut(key, ":")
	return named && g.has(name) || g.Keys == nil || slices.Contains(g.Keys, journal.KindOf(key))
}

// asksForKind is asksFor for a kind of keys, which may be the name of a Cache.
func (g *pagedGuard) asksForKind(kind string) bool {
	return g.has(kind) || g.Keys == nil || slices.Contains(g.Keys, kind)
}

// loads reports whether a load has had the tag, or one of the same kind. A page of an earlier version does not say.
func (g *pagedGuard) loads(tag string) bool {
	return g.Tags == nil || slices.Contains(g.Tags, journal.KindOf(tag))
}

// mistyped says which tags and keys were invalidated that none of the Guards has.
func mistyped(guards []*pagedGuard) (all []finding) {
	for _, g := range guards {
		for what, of := range map[string]struct {
			unknown map[string]uint64
			ago     map[string]float64
			has     func(*pagedGuard, string) bool
		}{"tags": {g.NoTags, g.NoTagsAgo, (*pagedGuard).loads}, "keys": {g.NoKeys, g.NoKeysAgo, (*pagedGuard).asksForKind}} {
			for kind, n := range of.unknown {
				last := ""
				if of.ago != nil {
					last = ", last " + seconds(math.Round(of.ago[kind])) + " ago"
				}
				if !slices.ContainsFunc(guards, func(g *pagedGuard) bool { return of.has(g, kind) }) {
					all = append(all, finding{Check: "instance", Node: g.Instance, Result: warning, Detail: fmt.Sprintf(
						"%s like %q were invalidated (%d%s), and no load of these instances has had one: mistyped?", what, kind, n, last,
					)})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b finding) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Detail, b.Detail)) })
	return all
}

// missing returns those of the keys that Redis has nothing of.
func missing(e *env, guard *cacheguard.Guard, names []string) (none []string, err error) {
	for _, key := range names {
		found, err := guard.Inspect(e.ctx, key)
		if err != nil {
			return nil, err
		}
		if isNothing(found) {
			none = append(none, key)
		}
	}
	return none, nil
}

// unusedTags returns those of the tags that no entry has which a Get could return.
func unusedTags(e *env, tags []string) (none []string, err error) {
	for _, tag := range tags {
		used, err := e.has(epoch.OfTag(tag))
		if err != nil {
			return nil, err
		}
		if !used {
			none = append(none, tag)
		}
	}
	return none, nil
}

// ofPages says what may be meant by tags that no entry has: what instances remember of tags does not tell those of pages apart.
func ofPages(e *env, unused []string) (notes []string) {
	for _, tag := range unused {
		kind, _, _ := strings.Cut(journal.KindOf(tag), "@") // and the Space
		if field := map[string]string{"tag": "Cache-Tag", "path": "Config.Prefixes"}[kind]; field != "" {
			notes = append(notes, fmt.Sprintf("no entry has the tag %q: if it is of pages, is it spelled as in %s?", tag, field))
		}
		for _, meant := range []string{"tag:" + tag, "path:" + tag} {
			if used, err := e.has(epoch.OfTag(meant)); used && err == nil {
				notes = append(notes, fmt.Sprintf("no entry has the tag %q, and pages have %q: did you mean that?", tag, meant))
			}
		}
	}
	return notes
}

// ofSchemes says what is meant by keys of pages that nothing has: the name of a page has no scheme.
func ofSchemes(missing []string) (notes []string) {
	for _, key := range missing {
		kind, rest, _ := strings.Cut(key, ":")
		space, _, _ := strings.Cut(kind, "@")
		if scheme, named, is := strings.Cut(rest, "://"); is && space == "page" && scheme != "" {
			notes = append(notes, fmt.Sprintf("no entry has the key %q: the name of a page has no scheme; did you mean %q?", key, kind+"://"+named))
		}
	}
	return notes
}

// isNothing reports whether no version has an entry, and nobody loads one.
func isNothing(found cacheguard.Inspection) bool {
	return found.State == cacheguard.EntryMissing && found.Load == nil && !slices.ContainsFunc(found.Versions, func(i cacheguard.Inspection) bool { return !isNothing(i) })
}
