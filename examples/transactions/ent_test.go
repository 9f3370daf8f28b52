//go:build generated

package transactions

import (
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/ent"
	"github.com/cacheguard/go/examples/transactions/ent/db"
	"github.com/cacheguard/go/examples/transactions/shop"
)

func init() {
	programs["ent"] = func(tb testing.TB, g *cacheguard.Guard, address string) (writer, shop.Caches) {
		s, err := ent.New(g, db.NewClient(db.Driver(entsql.OpenDB(dialect.Postgres, openSQL(tb, address)))))
		must(tb, err)
		return s, s.Caches
	}
	absences["ent"] = db.IsNotFound
}
