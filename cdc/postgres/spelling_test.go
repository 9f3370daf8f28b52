package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestAKeyWithSeveralTextsIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`CREATE EXTENSION citext; CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE DOMAIN code AS citext; CREATE DOMAIN ci_text AS text COLLATE ci`)
	texts := &feedtest.Texts{Shop: w.Shop, Exec: func(sql string) { w.exec(sql) }}
	texts.Make = func(is string) string {
		w.exec("DROP TABLE IF EXISTS texts; CREATE TABLE texts (k " + is + " PRIMARY KEY, name text); ALTER PUBLICATION shop ADD TABLE texts")
		w.pool.Reset()
		return "public.texts"
	}
	texts.Find = func(ctx context.Context, k any) (own, name string, err error) {
		var cast string
		w.ask(&cast, "SELECT replace(atttypid::regtype::text, 'character', 'bpchar') FROM pg_attribute WHERE attrelid = 'texts'::regclass AND attname = 'k'")
		text := "k::text"
		if cast == "inet" {
			text = "host(k)" // what a query for k shows
		}
		err = w.pool.QueryRow(ctx, "SELECT "+text+", name FROM texts WHERE k = $1::text::"+cast, k).Scan(&own, &name)
		return own, name, err
	}
	texts.Open = func(name string, guard *cacheguard.Guard, table cdc.Table) (feedtest.Checked, error) {
		cfg := w.config(table)
		cfg.Guards, cfg.Temporary = []*cacheguard.Guard{guard}, true
		return New(cfg)
	}
	texts.Run(
		feedtest.Text{Is: "text COLLATE ci", Own: "Abc", Others: []string{"abc", "ABC"}}, feedtest.Text{Is: "ci_text", Own: "Abc", Others: []string{"abc"}},
		feedtest.Text{Is: "citext", Own: "Abc", Others: []string{"abc"}}, feedtest.Text{Is: "code", Own: "Abc", Others: []string{"abc"}},
		feedtest.Text{Is: "char(5)", Own: "ab", Others: []string{"ab ", "ab   "}, Clean: func(k string) string { return strings.TrimRight(k, " ") }}, feedtest.Text{Is: "int", Own: "42", Others: []string{"042", " 42"}},
		feedtest.Text{Is: "uuid", Own: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", Others: []string{"6BA7B810-9dad-11d1-80b4-00c04fd430c8", "{6ba7b8109dad11d180b400c04fd430c8}"}},
		feedtest.Text{Is: "numeric", Own: "1.50", Others: []string{"1.5"}}, feedtest.Text{Is: "inet", Own: "10.0.0.1", Others: []string{"10.0.0.1/32"}, Clean: func(k string) string { return strings.TrimSuffix(k, "/32") }},
		feedtest.Text{Is: "interval", Own: "1 day", Others: []string{"24:00:00"}}, feedtest.Text{Is: "int[]", Own: "{1,2}", Others: []string{"{ 1, 2 }"}},
		feedtest.Text{Is: "name", Own: strings.Repeat("a", 63), Others: []string{strings.Repeat("a", 64)}}, feedtest.Text{Is: "jsonb", Own: `{"a": 1}`, Others: []string{`{"a":1}`}},
	)
}
