package feedtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// Schemas draws tables, has their rows and their schemas changed, and compares the key of each row as a feed sees it with the text that the service's own query has
// for it: a key that was not seen is a fault, unless the kinds of its table were invalidated whole. So is a row that a query finds by another text than its key, unless
// SelfCheck names its table.
type Schemas struct {
	*Shop

	Draw func(r *rand.Rand, n int) Drawn
	Exec func(sql string) error // a transaction, which may fail
	Keys func(query string) ([]string, error)
	Open func(tables []cdc.Table) (Feed, error)

	// Mistake changes the keys that a feed sees, to show that this is found.
	Mistake func(key string) string

	planted                 bool // such a Mistake
	compared, whole, faults int  // keys that were as they should be, whose kinds were invalidated whole, and others
}

// Drawn is a table with the columns id, which its rows get by themselves, n, and k, the key.
type Drawn struct {
	Name   string   // as it is mapped
	SQL    string   // as statements have it
	Make   []string // it
	Values []string // of k, as SQL
	Text   string   // of k, as SQL
	Go     func(v any) string
	Single bool     // keys are made of values that are no texts
	Change []string // statements about it or what is published of it, each of which may be run at any time, and may fail
}

// seen is what a feed has seen of a table.
type seen struct {
	guard *cacheguard.Guard

	mu    sync.Mutex
	keys  map[string]bool
	whole int
}

// Name is part of cdc.Kind.
func (s *seen) Name() string { return "seen" }

// InvalidateAll is part of cdc.Kind.
func (s *seen) InvalidateAll(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole++
	return nil
}

// Guard is part of cdc.Kind.
func (s *seen) Guard() *cacheguard.Guard { return s.guard }

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.whole = make(map[string]bool), 0
}

// has reports whether a key was seen, and whether everything was invalidated.
func (s *seen) has(key string) (seen, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key], s.whole > 0
}

func (s *seen) table(d Drawn, mistake func(string) string) cdc.Table {
	return cdc.Table{Name: d.Name, Kinds: []cdc.Kind{s}, Changed: func(c cdc.Change) (changes cacheguard.Changes) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, row := range []cdc.Row{c.Old, c.New} {
			if row.IsZero() {
				continue
			}
			if v, err := row.Value("k"); err == nil && v != nil { // the feed has the error
				s.keys[mistake(d.Go(v))] = true
				changes.Keys = append(changes.Keys, fmt.Sprintf("%.100s", "k:"+d.Go(v)))
			}
		}
		return changes
	}}
}

const (
	drawnTables = 6 // of a round
	drawnSteps  = 4
)

// Run draws so many schemas.
func (s *Schemas) Run(rounds int) {
	s.Helper()
	if s.planted = s.Mistake != nil; !s.planted {
		s.Mistake = func(key string) string { return key }
	}
	for round := range rounds {
		s.round(rand.New(rand.NewPCG(uint64(round), 7)), round)
		if s.Failed() {
			return
		}
	}
	s.Logf("%d keys were seen, and those of %d were invalidated whole", s.compared, s.whole)
	if s.compared == 0 && !s.planted || s.planted && s.faults == 0 {
		s.Errorf("%d faults were found", s.faults)
	}
}

func (s *Schemas) round(r *rand.Rand, round int) {
	s.Helper()
	var drawn []Drawn
	var all []*seen
	var tables []cdc.Table
	for n := range drawnTables {
		d := s.Draw(r, round*drawnTables+n)
		for _, statement := range d.Make {
			if err := s.Exec(statement); err != nil {
				s.Fatalf("%s: %v", statement, err)
			}
		}
		one := &seen{guard: s.Guard}
		one.forget()
		drawn, all, tables = append(drawn, d), append(all, one), append(tables, one.table(d, s.Mistake))
	}
	f, err := s.Open(tables)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }() // owner: this call; stop: cancel; joined below
	defer func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			s.Errorf("Run returned %v", err)
		}
	}()
	s.CatchUp(f)
	checked := fmt.Sprint(f.(Checked).SelfCheck(s.Context()))
	for step := range drawnSteps {
		if step > 0 {
			s.change(r, f, drawn, all)
		}
		keys, said := make([]map[string]bool, len(drawn)), make([]string, len(drawn))
		for i, d := range drawn {
			all[i].forget()
			if keys[i], said[i] = s.step(r, d, step); step == 0 && !d.Single && !s.planted {
				s.texts(d, keys[i], checked)
			}
		}
		s.CatchUpInTheEnd(f)
		for i, d := range drawn {
			for key := range keys[i] {
				seen, whole := all[i].has(key)
				switch {
				case seen:
					s.compared++
				case whole:
					s.whole++
				case s.planted:
					s.faults++
				default:
					s.Errorf("round %d, step %d: table %s (%s): key %q was not seen, after %s", round, step, d.Name, d.Make[0], key, said[i])
				}
			}
		}
	}
}

// change changes tables when nothing else does, and expects that the feed sees each row that is another one then.
func (s *Schemas) change(r *rand.Rand, f Feed, drawn []Drawn, all []*seen) {
	s.Helper()
	before, said := make([]map[string]string, len(drawn)), make([]string, len(drawn))
	for i, d := range drawn {
		_ = s.Exec("INSERT INTO " + d.SQL + " (n, k) VALUES (0, " + d.Values[0] + ")") // which may fail
		before[i] = s.rows(d)
	}
	s.CatchUpInTheEnd(f)
	for i, d := range drawn {
		all[i].forget()
		if len(d.Change) > 0 {
			said[i] = d.Change[r.IntN(len(d.Change))]
			_ = s.Exec(said[i]) // the same
		}
	}
	s.CatchUpInTheEnd(f)
	for i, d := range drawn {
		after := s.rows(d)
		for key, n := range before[i] {
			if seen, whole := all[i].has(key); n != after[key] && !seen && !whole && !s.planted {
				s.Errorf("table %s (%s): the row of %q is another one, which was not seen, after %s", d.Name, d.Make[0], key, said[i])
			}
		}
	}
}

// rows are the keys of a table, with the numbers of their rows.
func (s *Schemas) rows(d Drawn) map[string]string {
	s.Helper()
	keys, err := s.Keys("SELECT " + d.Text + " FROM " + d.SQL + " WHERE k IS NOT NULL ORDER BY id")
	if err != nil {
		s.Fatal(err)
	}
	numbers, err := s.Keys("SELECT CAST(n AS char(10)) FROM " + d.SQL + " WHERE k IS NOT NULL ORDER BY id")
	if err != nil || len(numbers) != len(keys) {
		s.Fatal(err, len(numbers), len(keys))
	}
	all := make(map[string]string)
	for i, key := range keys {
		all[key] += numbers[i] + " "
	}
	return all
}

// texts looks for rows that a query finds by other texts than their keys.
func (s *Schemas) texts(d Drawn, keys map[string]bool, checked string) {
	s.Helper()
	for key := range keys {
		for _, other := range []string{strings.ToUpper(key), strings.ToLower(key), key + " ", " " + key, "0" + key} {
			if keys[other] || strings.ContainsAny(other, "\\\x00") {
				continue
			}
			found, err := s.Keys("SELECT " + d.Text + " FROM " + d.SQL + " WHERE k = '" + strings.ReplaceAll(other, "'", "''") + "'")
			if err == nil && len(found) > 0 && !strings.Contains(checked, d.Name) {
				s.Errorf("table %s (%s): the row of %q is found by %q, and SelfCheck does not name it", d.Name, d.Make[0], key, other)
			}
		}
	}
}

// step changes a table, and returns the keys of all rows that were in it meanwhile, and what changed beside them.
func (s *Schemas) step(r *rand.Rand, d Drawn, step int) (keys map[string]bool, said string) {
	s.Helper()
	keys = make(map[string]bool)
	value := func() string { return d.Values[r.IntN(len(d.Values))] }
	look := func() {
		now, err := s.Keys("SELECT " + d.Text + " FROM " + d.SQL + " WHERE k IS NOT NULL")
		if err != nil {
			s.Fatal(err)
		}
		for _, key := range now {
			keys[key] = true
		}
	}
	try := func(sql string) { _ = s.Exec(sql) } // what fails is rolled back
	for _, v := range d.Values {
		try("INSERT INTO " + d.SQL + " (n, k) VALUES (0, " + v + ")")
	}
	look()
	if step > 0 && len(d.Change) > 0 {
		said = d.Change[r.IntN(len(d.Change))]
		if err := s.Exec(said); err != nil {
			said += fmt.Sprintf(" (which failed: %v)", err)
		}
		look()
	}
	try("UPDATE " + d.SQL + " SET n = n + 1")
	try("UPDATE " + d.SQL + " SET k = " + value() + " WHERE n % 2 = 1")
	look()
	try("DELETE FROM " + d.SQL + " WHERE k = " + value())
	if step%2 == 1 {
		try("DELETE FROM " + d.SQL)
	}
	return keys, said
}
