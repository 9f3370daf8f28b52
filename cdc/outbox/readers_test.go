package outbox

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

// second is the feed of another service: with a Prefix of its own.
func (w *world) second(t *testing.T) Config {
	guard, products := feedtest.NewCache(w, w.Client, w.Prefix+"other", w.NotFound, w.Load)
	cfg := w.config()
	cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{feedtest.ByID("products", products)}
	return cfg
}

func TestTwoServicesThatMapATableFindEachOther(t *testing.T) {
	everywhere(t, func(w *world) {
		f, _ := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		same, err := New(w.db, w.config()) // another instance
		expect.ErrorIs(w, err)
		expect.ErrorIs(w, same.SelfCheck(w.Context()))
		other, err := New(w.db, w.second(w.T))
		expect.ErrorIs(w, err)
		feedtest.Says(w, other.SelfCheck(w.Context()), "table products", "another feed", "Guards of both")
		feedtest.Says(w, other.CatchUp(w.Context()), "another feed")
		feedtest.Run(w.Shop, other, nil) // all the same
		w.Await("each knows of the other", func() bool {
			return errors.Is(f.Stats().Err, engine.ErrAnother) && errors.Is(other.Stats().Err, engine.ErrAnother)
		})
		for _, name := range []string{"uno", "eins"} {
			w.exec("UPDATE products SET name = '" + name + "'")
			w.Await("the value is not old, whoever has read the row", func() bool {
				got, err := w.Products.Get(w.Context(), 1)
				return err == nil && got == name
			})
		}
		feedtest.Says(w, f.CatchUp(w.Context()), "another feed")
		feedtest.Says(w, f.SelfCheck(w.Context()), "another feed")
	})
}

func TestWhatAnotherServiceHasReadMeanwhileIsInvalidatedWhole(t *testing.T) {
	everywhere(t, func(w *world) {
		f, stop := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		stop()
		f, stop = w.run(w.config())
		w.CatchUp(f)
		w.Keeps(1, "one")
		stop()
		other, err := New(w.db, w.second(w.T))
		_, stop = feedtest.Run(w.Shop, other, err)
		w.exec("UPDATE products SET name = 'uno'")
		w.Await("it has read the row", func() bool { return w.left() == 0 })
		stop()
		f, _ = w.run(w.config())
		w.Await("the value is not old", func() bool {
			got, err := w.Products.Get(w.Context(), 1)
			return err == nil && got == "uno"
		})
		w.Logs("another feed has confirmed")
		w.Await("it is over", func() bool { return f.Stats().Err == nil && f.CatchUp(w.Context()) == nil })
	})
}

func TestServicesThatMapOtherTablesDoNotMind(t *testing.T) {
	everywhere(t, func(w *world) {
		w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint)")
		for _, statement := range Triggers(w.dialect, "notes", "product") {
			w.exec(statement)
		}
		f, _ := w.run(w.config())
		cfg := w.second(w.T)
		cfg.Tables = []cdc.Table{{Name: "notes", Changed: func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }}}
		other, err := New(w.db, cfg)
		feedtest.Run(w.Shop, other, err)
		w.CatchUp(f)
		w.CatchUp(other)
		expect.ErrorIs(w, other.SelfCheck(w.Context()))
		expect.ErrorIs(w, f.SelfCheck(w.Context()))
	})
}

func FuzzRowOf(f *testing.F) {
	for _, row := range []string{"", "{}", `{"id":1}`, `{"id":18446744073709551615}`, `{"id":1e400}`, `{"a":null,"b":[1],"c":{"d":true}}`, `{"a":"\ud800"}`, "[1]", `{"a":1}{"b":2}`} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := rowOf(sql.NullString{String: text, Valid: true}, nil)
		if err != nil {
			return
		}
		for _, column := range row.Columns() {
			if !row.Has(column) {
				t.Errorf("%q: no column %q", text, column)
			}
			_, _ = row.Value(column)  // whatever it is, it is read without a panic
			_, _ = row.Int64(column)  // the same
			_, _ = row.Uint64(column) // the same
			_, _ = row.String(column) // the same
			_, _ = row.Bool(column)   // the same
			_, _ = row.Time(column)   // the same
		}
	})
}
