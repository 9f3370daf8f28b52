package postgres

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestNewNamesTheFieldsThatAreWrong(t *testing.T) {
	t.Parallel()
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	_, err := New(Config{Slot: "Shop-1", MaxRetained: 5, Guards: []*cacheguard.Guard{nil}, Tables: []cdc.Table{
		{Name: "public.a", Changed: nothing}, {Name: "public.a", Changed: nothing}, {Name: "", Changed: nothing}, {Name: "public.b"},
		cdc.Rows[int64, string]("public.c", nil, nil),
	}})
	feedtest.Says(t, err, "Config.Conn: is empty", "Config.Publication: is empty", "Config.Slot", "MaxRetained", "Guards: one of them is nil", "public.a is there twice",
		"Tables[2]: the name is empty", "Tables[3]: public.b: Changed is nil", "Tables[4]: public.c: Changed is nil")
	_, err = New(Config{Conn: "host=x port=y", Publication: "p", Slot: "s"})
	feedtest.Says(t, err, "Config.Conn: ", "Guards: is empty", "Tables: is empty")
	var none *Feed
	for name, err := range map[string]error{
		"Run": none.Run(t.Context()), "CatchUp": none.CatchUp(t.Context()), "SelfCheck": none.SelfCheck(t.Context()), "Stats": none.Stats().Err,
	} {
		if err == nil {
			t.Errorf("%s of a nil Feed returns no error", name)
		}
	}
}

func TestNewRefusesACacheOfAnotherGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	cfg := w.config()
	cfg.Guards[0], _ = w.Instance(w.redis.Client(t))
	_, err := New(cfg)
	feedtest.Says(t, err, "public.products", "not among Guards")
}

func TestSelfCheckNamesWhatIsMissingAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	for name, c := range map[string]struct {
		make   func(*world)
		change func(*Config)
		says   []string
	}{
		"nothing":           {},
		"wrong password":    {change: func(c *Config) { c.Conn += " user=nobody" }, says: []string{"nobody"}},
		"no publication":    {make: drop, says: []string{"CREATE PUBLICATION \"shop\" FOR TABLE public.products"}},
		"unknown table":     {change: func(c *Config) { c.Tables = []cdc.Table{{Name: "products", Changed: nothing}} }, says: []string{"no table products", "public.products"}},
		"not published":     {make: unpublish, says: []string{"ALTER PUBLICATION \"shop\" ADD TABLE public.products"}},
		"no deletes":        {make: run("ALTER PUBLICATION shop SET (publish = 'insert')"), says: []string{"SET (publish = 'insert, update, delete, truncate')"}},
		"some rows":         {make: run("ALTER PUBLICATION shop SET TABLE products WHERE (id > 7)"), says: []string{"has a WHERE"}},
		"no identity":       {make: run("ALTER TABLE products DROP CONSTRAINT products_pkey"), says: []string{"public.products has no REPLICA IDENTITY"}},
		"a view":            {make: run("DROP TABLE products; CREATE VIEW products AS SELECT 1 AS id"), says: []string{"public.products is no table"}},
		"another's slot":    {make: foreign, says: []string{"another's"}},
		"no rights":         {make: run("CREATE ROLE weak LOGIN"), change: func(c *Config) { c.Conn += " user=weak" }, says: []string{"ALTER ROLE \"weak\" REPLICATION"}},
		"through the roots": {make: partitioned, says: []string{"publish_via_partition_root = false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			if c.make != nil {
				c.make(w)
			}
			cfg := w.config()
			if c.change != nil {
				c.change(&cfg)
			}
			f, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			err = f.SelfCheck(t.Context())
			if c.says == nil {
				expect.ErrorIs(t, err)
			}
			feedtest.Says(t, err, c.says...)
		})
	}
}

func TestSelfCheckNamesAWrongPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Address)
	w.exec("CREATE ROLE app LOGIN REPLICATION PASSWORD 'right'")
	var file string
	w.ask(&file, "SHOW hba_file")
	if err := os.WriteFile(file, []byte("local all test trust\nlocal all app scram-sha-256\n"), 0o644); err != nil { // it is there, and is its owner's
		t.Fatal(err)
	}
	w.exec("SELECT pg_reload_conf()")
	w.Await("passwords count", func() bool {
		var rules int
		w.ask(&rules, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256' AND error IS NULL")
		return rules == 1
	})
	cfg := w.config()
	cfg.Conn += " user=app password=wrong"
	f, err := New(cfg)
	expect.ErrorIs(t, err)
	w.Await("the server has read them", func() bool { return f.SelfCheck(t.Context()) != nil })
	err = f.SelfCheck(t.Context())
	feedtest.Says(t, err, "password authentication failed")
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error has the password: %v", err)
	}
}

func TestSelfCheckNamesTheWALLevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t, "wal_level=replica").Address)
	f, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	feedtest.Says(t, f.SelfCheck(t.Context()), "ALTER SYSTEM SET wal_level = 'logical'")
}

func TestATableThatIsNoLongerPublishedIsATroubleAndThenInvalidatedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("ALTER PUBLICATION shop DROP TABLE products")
	w.Await("it is a trouble", func() bool {
		err := f.Stats().Err
		return err != nil && strings.Contains(err.Error(), "ADD TABLE public.products")
	})
	w.exec("UPDATE products SET name = 'uno'")
	w.exec("ALTER PUBLICATION shop ADD TABLE products")
	w.CatchUp(f)
	w.Reads(1, "uno")
}

func TestASecondRunAtTheSameTimeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	feedtest.Says(t, f.Run(ctx), "runs already")
}

func run(sql string) func(*world) { return func(w *world) { w.exec(sql) } }

func drop(w *world) { w.exec("DROP PUBLICATION shop") }

func unpublish(w *world) { w.exec("ALTER PUBLICATION shop DROP TABLE products") }

func foreign(w *world) {
	w.exec("SELECT pg_create_physical_replication_slot($1)", w.slot)
}

func partitioned(w *world) {
	w.exec(`DROP TABLE products; CREATE TABLE products (id bigint PRIMARY KEY) PARTITION BY RANGE (id)`)
	w.exec(`ALTER PUBLICATION shop ADD TABLE products; ALTER PUBLICATION shop SET (publish_via_partition_root = true)`)
}
