package postgres

import (
	"context"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAReportNamesKeysThatStayOldAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, forgets := range map[string]bool{"a Changed that forgets the key": true, "a Changed that names it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			report, err := cdc.NewReport(cdc.ReportConfig{OneIn: 1, Logger: w.Logger()})
			expect.ErrorIs(t, err)
			table := cdc.Reported(report, "public.products", w.Products, func(r cdc.Row) (int64, error) { return r.Int64("id") }, w.load)
			if changed := table.Changed; forgets {
				table.Changed = func(c cdc.Change) cacheguard.Changes {
					changed(c)
					return cacheguard.Changes{}
				}
			}
			f, _ := w.run(w.config(table))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- report.Run(ctx) }() // owner: the test; stop: cancel; joined below
			defer func() { cancel(); expect.ErrorIs(t, <-ended, context.Canceled) }()
			w.CatchUp(f)
			w.Reads(1, "one")
			redistest.Later()
			w.exec("UPDATE products SET name = 'uno'")
			w.CatchUp(f)
			w.Await("somebody has looked a second after the commit", func() bool { return report.Consistency().After[0].Reads == 1 })
			c := report.Consistency()
			if !forgets {
				expect.Equal(t, "old values", c.After[0].Old, 0)
				expect.Equal(t, "it took some time until it was consistent", c.Longest > 0, true)
				return
			}
			expect.Equal(t, "old values", c.After[0].Old, 1)
			expect.Equal(t, "the key", c.Old[0].Key, "product:1")
			expect.Equal(t, "the epochs of its tags", len(c.Old[0].Epochs), 1)
			feedtest.Says(t, errorOf(c.Old[0].Why), "before the commit, and not invalidated")
			w.Logs("the cache served an old value")
		})
	}
}

type errorOf string

func (e errorOf) Error() string { return string(e) }
