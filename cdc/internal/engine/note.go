package engine

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/watch/observe"
)

// Note is what the Redis of a cache knows, under its Prefix, of the feed that invalidates it: for which tables, in which log, and up to where. A
// database's own position does not say whose cache was invalidated before it. The note is written before the database is told, so a position that is beyond it
// was confirmed by somebody else, or Redis has lost the note.
type Note struct {
	Log      string            // which the position is in
	Position uint64            // everything before it is invalidated
	Tables   map[string]string // of which changes are invalidated, and what the log has of each, where that can change without a sign
}

// Notes are notes about a feed in the Redis of each of its Guards.
type Notes struct {
	Guards []*cacheguard.Guard
	Name   string // of the feed
}

// noteTimeout bounds a command.
const noteTimeout = 10 * time.Second

// Write writes a note: all of it, as Redis may have lost the last one.
func (n *Notes) Write(ctx context.Context, note Note) error {
	tables, err := json.Marshal(note.Tables)
	if err != nil {
		return err
	}
	return n.each(func(key string, run func(ctx context.Context, args ...any) (any, error)) error {
		ctx, cancel := context.WithTimeout(ctx, noteTimeout)
		defer cancel()
		_, err := run(ctx, "HSET", key, "position", strconv.FormatUint(note.Position, 10), "log", note.Log, "tables", tables)
		return err
	})
}

// Read returns the note of each Guard that has a Redis.
func (n *Notes) Read(ctx context.Context) (all []Note, err error) {
	err = n.each(func(key string, run func(ctx context.Context, args ...any) (any, error)) error {
		ctx, cancel := context.WithTimeout(ctx, noteTimeout)
		defer cancel()
		reply, err := run(ctx, "HMGET", key, "position", "log", "tables")
		if err != nil {
			return err
		}
		fields, _ := reply.([]any) // else there is none
		text := make([]string, 3)
		for i, field := range fields[:min(len(fields), len(text))] {
			text[i], _ = field.(string) // the same
		}
		note := Note{Log: text[1]}
		note.Position, _ = strconv.ParseUint(text[0], 10, 64) // the same
		_ = json.Unmarshal([]byte(text[2]), &note.Tables)     // the same
		all = append(all, note)
		return nil
	})
	return all, err
}

//go:embed cache.lua
var cacheSource string

// Cache identifies the caches of the Guards for all who invalidate them, by a text that is in the Redis of each.
func (n *Notes) Cache(ctx context.Context) (string, error) {
	var ids []string
	err := n.each(func(key string, run func(ctx context.Context, args ...any) (any, error)) error {
		ctx, cancel := context.WithTimeout(ctx, noteTimeout)
		defer cancel()
		id, err := run(ctx, "EVAL", cacheSource, 1, key, rand.Text())
		ids = append(ids, fmt.Sprint(id))
		return err
	})
	return strings.Join(ids, " "), err
}

func (n *Notes) each(do func(key string, run func(ctx context.Context, args ...any) (any, error)) error) error {
	var errs []error
	for _, g := range n.Guards {
		seen, _ := observe.Look[observe.Guard](g)
		if err := do(keys.Tagged(seen.Prefix+":cdc", n.Name), seen.Redis); err != nil {
			errs = append(errs, fmt.Errorf("cdc: the note about the feed in Redis: %w", err))
		}
	}
	return errors.Join(errs...)
}

// ErrAnother says that a position was confirmed by a feed that does not invalidate this cache.
var ErrAnother = errors.New("another feed has confirmed its position, of another Redis, Prefix, database or publication, or Redis has lost what this one noted")

// Own compares a position that the feed has confirmed, of a log, with the notes, and returns them. The error matches ErrAnother if somebody else has confirmed it. The
// position was asked for before, or the notes may be older.
func (n *Notes) Own(ctx context.Context, log string, position uint64) (Noted, error) {
	notes, err := n.Read(ctx)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		if note.Log != log || note.Position < position {
			return nil, ErrAnother
		}
	}
	return notes, nil
}

// Noted are notes about a position of the feed's own.
type Noted []Note

// Lacking are tables that the feed which has confirmed the position does not map.
func (n Noted) Lacking(tables Tables) (lacking []string) {
	for _, name := range tables.Names() {
		if slices.ContainsFunc(n, func(note Note) bool { _, there := note.Tables[name]; return !there }) {
			lacking = append(lacking, name)
		}
	}
	return lacking
}

// Changed are tables of which the log has something else than it had when the position was confirmed, by a part of what was noted.
func (n Noted) Changed(published map[string]string, part func(string) string) (changed []string) {
	for _, name := range slices.Sorted(maps.Keys(published)) {
		if slices.ContainsFunc(n, func(note Note) bool {
			was, there := note.Tables[name]
			return there && part(was) != part(published[name])
		}) {
			changed = append(changed, name)
		}
	}
	return changed
}

// GoOn invalidates what may be old although a position was confirmed, before a feed goes on from there. n and err are from Own.
func (e *Engine) GoOn(ctx context.Context, n Noted, err error) error {
	if errors.Is(err, ErrAnother) {
		return e.Whole(ctx, ErrAnother.Error())
	}
	lacking := n.Lacking(e.Tables)
	if err != nil || len(lacking) == 0 {
		return err
	}
	return e.WholeOf(ctx, "the feed that read before does not map their tables: "+strings.Join(lacking, ", "), e.Tables.Of(lacking))
}

// Persist writes a note, and tries again until Redis has it. published is what the log has of the tables; nil: all of each.
func (e *Engine) Persist(ctx context.Context, n *Notes, log string, position uint64, published map[string]string) error {
	tables := make(map[string]string)
	for name := range e.Tables {
		tables[name] = published[name]
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := n.Write(ctx, Note{Log: log, Position: position, Tables: tables})
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			e.Trouble(err)
		}
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Awaited tells a position that somebody else has confirmed from a note that Redis does not have yet, or has lost for a moment: the feed writes it once a second.
type Awaited struct{ since time.Time }

// settleNote is for how long.
const settleNote = 3 * time.Second

// Judge returns nil for an error that matches ErrAnother, until it has lasted.
func (a *Awaited) Judge(err error) error {
	switch {
	case !errors.Is(err, ErrAnother):
		a.since = time.Time{}
	case a.since.IsZero():
		a.since = time.Now()
		return nil
	case time.Since(a.since) < settleNote:
		return nil
	}
	return err
}
