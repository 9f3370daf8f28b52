package feedtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Checked is a Feed that checks itself.
type Checked interface {
	Feed
	SelfCheck(ctx context.Context) error
}

// Texts has tables whose rows a query finds by several texts of their key: entries under another text than the feed's would stay.
type Texts struct {
	*Shop

	Make func(is string) (table string) // makes table texts anew, with a key k of that type, and returns its name as it is mapped
	Exec func(sql string)
	Find func(ctx context.Context, k any) (own, name string, err error) // a query of the service, for a string or an int64, with the database's own text
	Open func(name string, guard *cacheguard.Guard, table cdc.Table) (Checked, error)
}

// Text is a type, a text of it, and others by which the database finds the same row.
type Text struct {
	Is, Own string
	Others  []string

	// Number says that the service's keys are numbers.
	Number bool

	// Clean makes one of those that queries return, in the mapping and in the loader. nil: they return one.
	Clean func(string) string
}

// asked is what a query of the service has for a key.
func (c Text) asked(k string) any {
	if n, err := strconv.ParseInt(k, 10, 64); c.Number && err == nil {
		return n
	}
	return k
}

// key is the key of a row.
func (c Text) key(r cdc.Row) (string, error) {
	if !c.Number {
		return r.String("k")
	}
	n, err := r.Int64("k")
	return strconv.FormatInt(n, 10), err
}

// Run expects that SelfCheck names the key of a mapping that does not see to that, and that nothing is old with one that does.
func (s *Texts) Run(texts ...Text) {
	s.Helper()
	for n, c := range texts {
		s.one(fmt.Sprintf("texts_%d", n), c)
		if s.Failed() {
			s.Fatal(c.Is)
		}
	}
}

// checked is what SelfCheck says, once the database answers in time, on a busy machine, too.
func (s *Texts) checked(f Checked) (err error) {
	s.Helper()
	redistest.Await(s, "the database answers", func() bool {
		err = f.SelfCheck(s.Context())
		return !errors.Is(err, context.DeadlineExceeded)
	})
	return err
}

func (s *Texts) one(name string, c Text) {
	s.Helper()
	table := s.Make(c.Is)
	clean := func(text string) string { return text }
	s.Exec("INSERT INTO texts (k, name) VALUES ('" + c.Own + "', 'one')")
	guard, err := cacheguard.New(s.Client, cacheguard.Config{Prefix: s.Prefix + name, TTL: time.Hour})
	expect.ErrorIs(s, err)
	defer guard.Close()
	things, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, string]{Name: "text", NegativeTTL: time.Hour, NotFound: s.NotFound, Load: func(ctx context.Context, k string) (string, error) {
		own, name, err := s.Find(ctx, c.asked(k))
		if err != nil {
			return "", err
		}
		return name, cdc.Exactly(k, clean(own))
	}})
	expect.ErrorIs(s, err)
	mapped := cdc.Rows(table, things, c.key)
	careless, err := s.Open(name, guard, mapped)
	expect.ErrorIs(s, err)
	checked := s.checked(careless)
	expect.ErrorIs(s, checked, cdc.ErrSpellings)
	Says(s, checked, table, "column k")
	mapped.Exact = []string{"k"}
	if c.Clean != nil {
		careless, err := s.Open(name, guard, mapped)
		expect.ErrorIs(s, err)
		expect.ErrorIs(s, s.checked(careless), cdc.ErrSpellings)
		clean = c.Clean
		mapped = cdc.Rows(table, things, func(r cdc.Row) (string, error) { k, err := r.String("k"); return clean(k), err })
		mapped.Exact = []string{"k"}
	}
	f, err := s.Open(name, guard, mapped)
	expect.ErrorIs(s, err)
	expect.ErrorIs(s, s.checked(f))
	_, stop := Run(s.Shop, f, nil)
	defer stop()
	for _, want := range []string{"one", "uno"} {
		s.Exec("UPDATE texts SET name = '" + want + "'")
		s.CatchUpInTheEnd(f)
		got, err := things.Get(s.Context(), clean(c.Own))
		expect.ErrorIs(s, err)
		expect.Equal(s, c.Is+" by "+c.Own, got, want)
		for _, other := range c.Others {
			_, found, err := s.Find(s.Context(), c.asked(other))
			expect.ErrorIs(s, err)
			expect.Equal(s, "the database finds it by "+other, found, want)
			if got, err := things.Get(s.Context(), other); !errors.Is(err, s.NotFound) {
				s.Errorf("%s by %q: %q (%v)", c.Is, other, got, err)
			}
		}
	}
}
