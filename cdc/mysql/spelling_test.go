package mysql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestAKeyWithSeveralTextsIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	texts := &feedtest.Texts{Shop: w.Shop, Exec: func(sql string) { w.exec(sql) }}
	texts.Make = func(is string) string {
		w.exec("DROP TABLE IF EXISTS texts", "CREATE TABLE texts (k "+is+" PRIMARY KEY, name varchar(20)) CHARSET utf8mb4")
		return w.name + ".texts"
	}
	texts.Find = func(ctx context.Context, k any) (own, name string, err error) {
		err = w.db.QueryRowContext(ctx, "SELECT concat(k, ''), name FROM texts WHERE k = ?", k).Scan(&own, &name)
		return own, name, err
	}
	texts.Open = func(name string, guard *cacheguard.Guard, table cdc.Table) (feedtest.Checked, error) {
		cfg := w.config(table)
		cfg.Name, cfg.Guards = w.name+name, []*cacheguard.Guard{guard}
		return New(cfg)
	}
	texts.Run(
		feedtest.Text{Is: "varchar(20)", Own: "Abc", Others: []string{"abc", "Abc ", "ábc"}}, feedtest.Text{Is: "varchar(20) COLLATE utf8mb4_bin", Own: "Abc", Others: []string{"Abc "}},
		feedtest.Text{Is: "varchar(20) COLLATE utf8mb4_unicode_ci", Own: "straße", Others: []string{"STRASSE"}}, feedtest.Text{Is: "varchar(20) CHARSET latin1", Own: "Abc", Others: []string{"abc"}},
		feedtest.Text{Is: "char(5)", Own: "ab", Others: []string{"ab ", "AB"}},
		feedtest.Text{Is: "enum('Abc')", Own: "Abc", Others: []string{"abc"}}, feedtest.Text{Is: "int(6) ZEROFILL", Own: "000042", Others: []string{"000042", "042"}, Clean: func(k string) string { return strings.TrimLeft(k, "0") }},
		feedtest.Text{Is: "bigint", Own: "42", Others: []string{"042"}}, feedtest.Text{Is: "decimal(6,2)", Own: "1.50", Others: []string{"1.5"}},
		feedtest.Text{Is: "uuid", Own: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Others: []string{"6BA7B810-9dad-41d1-80b4-00c04fd430c8"}},
		feedtest.Text{Is: "inet6", Own: "::1", Others: []string{"0:0:0:0:0:0:0:1"}}, feedtest.Text{Is: "time", Own: "03:04:05", Others: []string{"3:4:5"}},
		feedtest.Text{Is: "year", Own: "1999", Others: []string{"99"}}, feedtest.Text{Is: "year", Own: "1999", Others: []string{"99"}, Number: true},
	)
}

// TestALabelThatIsANumberIsNamed has labels that are other numbers than their places, by which a query for a number finds them.
func TestALabelThatIsANumberIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for is, want := range map[string]error{"enum('10','20')": cdc.ErrSpellings, "set('1','2','3')": cdc.ErrSpellings, "enum('1','2')": nil, "set('1','2','4')": nil, "enum('a','it''s')": nil} {
		w.exec("DROP TABLE IF EXISTS labels", "CREATE TABLE labels (id "+is+" COLLATE utf8mb4_nopad_bin) CHARSET utf8mb4")
		f, err := New(w.config(w.Rows(w.name + ".labels")))
		expect.ErrorIs(t, err)
		if err := f.SelfCheck(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", is, err, want)
		}
	}
}
