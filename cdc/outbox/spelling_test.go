package outbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestAKeyWithSeveralTextsIsNamed(t *testing.T) {
	everywhere(t, func(w *world) {
		if w.dialect == PostgreSQL {
			w.exec("CREATE EXTENSION citext")
			w.exec("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		w.db.SetMaxIdleConns(0) // as connections remember the columns of their queries
		texts := &feedtest.Texts{Shop: w.Shop, Exec: w.exec}
		is := ""
		texts.Make = func(kind string) string {
			is, _, _ = strings.Cut(kind, " COLLATE")
			w.exec("DROP TABLE IF EXISTS texts")
			w.exec("DELETE FROM cacheguard_outbox") // where the feed before has said that it reads
			w.exec("CREATE TABLE texts (k " + kind + " PRIMARY KEY, name varchar(20))" + map[Dialect]string{MySQL: " CHARSET utf8mb4"}[w.dialect])
			for _, statement := range Triggers(w.dialect, "texts", "k") {
				w.exec(statement)
			}
			return "texts"
		}
		texts.Find = func(ctx context.Context, k any) (own, name string, err error) {
			query := map[Dialect]string{SQLite: "SELECT k || '', name FROM texts WHERE k = ?", MySQL: "SELECT concat(k, ''), name FROM texts WHERE k = ?", PostgreSQL: "SELECT k::text, name FROM texts WHERE k = $1::text::" + is}[w.dialect]
			err = w.db.QueryRowContext(ctx, query, k).Scan(&own, &name)
			return own, name, err
		}
		texts.Open = func(name string, guard *cacheguard.Guard, table cdc.Table) (feedtest.Checked, error) {
			cfg := w.config()
			cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{table}
			f, err := New(w.db, cfg)
			if err == nil {
				f.every = 100 * time.Millisecond
			}
			return f, err
		}
		texts.Run(map[Dialect][]feedtest.Text{
			PostgreSQL: {
				{Is: "text COLLATE ci", Own: "Abc", Others: []string{"abc"}}, {Is: "citext", Own: "Abc", Others: []string{"abc"}}, {Is: "int", Own: "42", Others: []string{"042"}},
				{Is: "uuid", Own: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", Others: []string{"6BA7B810-9dad-11d1-80b4-00c04fd430c8"}}, {Is: "numeric", Own: "1.50", Others: []string{"1.5"}},
			},
			MySQL: {
				{Is: "varchar(20)", Own: "Abc", Others: []string{"abc", "Abc "}}, {Is: "varchar(20) COLLATE utf8mb4_bin", Own: "Abc", Others: []string{"Abc "}},
				{Is: "int(6) ZEROFILL", Own: "000042", Others: []string{"000042"}, Clean: func(k string) string { return strings.TrimLeft(k, "0") }}, {Is: "decimal(6,2)", Own: "1.50", Others: []string{"1.5"}},
			},
			SQLite: {
				{Is: "text COLLATE NOCASE", Own: "Abc", Others: []string{"abc"}}, {Is: "varchar(9) COLLATE RTRIM", Own: "Abc", Others: []string{"Abc "}},
				{Is: "integer", Own: "42", Others: []string{"042"}}, {Is: "numeric", Own: "42", Others: []string{"42.0"}},
			},
		}[w.dialect]...)
	})
}

func TestALabelThatIsANumberIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, MySQL, shared.Client(t))
	for is, want := range map[string]error{"enum('10','20')": cdc.ErrSpellings, "enum('1','2')": nil} {
		w.exec("DROP TABLE IF EXISTS labels")
		w.exec("CREATE TABLE labels (id " + is + " COLLATE utf8mb4_nopad_bin) CHARSET utf8mb4")
		for _, statement := range Triggers(MySQL, "labels", "id") {
			w.exec(statement)
		}
		cfg := w.config()
		cfg.Tables = []cdc.Table{w.Rows("labels")}
		f, err := New(w.db, cfg)
		expect.ErrorIs(t, err)
		if err := f.SelfCheck(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", is, err, want)
		}
	}
}
