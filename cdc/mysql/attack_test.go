package mysql

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

// TestADefinitionIsFoundHoweverItWritesTheName has tables whose names statements write in several ways, in the charset of their session.
func TestADefinitionIsFoundHoweverItWritesTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket) // others would have theirs invalidated, too
	for i, c := range []struct {
		name       string
		statements []string
	}{
		{"a`b", []string{"TRUNCATE `a``b`"}},
		{`a"b`, []string{"SET SESSION sql_mode = 'ANSI_QUOTES'", `TRUNCATE "a""b"`, "SET SESSION sql_mode = DEFAULT"}},
		{"grüße", []string{"SET NAMES latin1", latin1Of("TRUNCATE `grüße`"), "SET NAMES utf8mb4"}},
		{"grüße2", []string{"SET NAMES latin1", latin1Of("/* grüße */ ALTER TABLE GRÜSSE2 ORDER BY id"), latin1Of("TRUNCATE grüße2"), "SET NAMES utf8mb4"}},
		{"dot.ted", []string{"TRUNCATE `dot.ted`"}},
		{"plain", []string{"/*! TRUNCATE plain */"}},
		{"plain2", []string{"-- first\nTRUNCATE plain2"}},
		{"plain3", []string{"# first\n(SELECT 1)", "# first\nTRUNCATE plain3"}},
		{"plain4", []string{"EXECUTE IMMEDIATE CONCAT('TRUN', 'CATE plain4')"}},
		{"plain5", []string{"CREATE PROCEDURE p() TRUNCATE plain5", "CALL p()"}},
		{"plain6", []string{"SET STATEMENT max_statement_time = 100 FOR TRUNCATE plain6"}},
		{"plain7", []string{"CREATE OR REPLACE TABLE plain7 (id bigint PRIMARY KEY, category varchar(20), name varchar(20))"}},
		{"plain8", []string{"BEGIN NOT ATOMIC TRUNCATE plain8; END"}},
	} {
		table := quoted(c.name)
		w.exec("CREATE TABLE " + table + " (id bigint PRIMARY KEY, category varchar(20), name varchar(20))")
		cfg := w.config(w.Rows(w.name + "." + c.name))
		cfg.Name += string(rune('a' + i))
		f, stop := w.run(cfg)
		w.exec("INSERT INTO " + table + " VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		whole := f.Stats().Whole
		conn, err := w.db.Conn(t.Context())
		expect.ErrorIs(t, err)
		for _, statement := range c.statements {
			_, err = conn.ExecContext(t.Context(), statement)
		}
		expect.ErrorIs(t, err)
		expect.ErrorIs(t, conn.Close())
		w.CatchUp(f)
		if f.Stats().Whole == whole {
			t.Errorf("nothing was invalidated after %q", c.statements)
		}
		stop()
	}
}

func latin1Of(s string) string {
	return strings.NewReplacer("ü", "\xfc", "ß", "\xdf", "Ü", "\xdc").Replace(s)
}

// TestRowsOfAMergeTableAreThoseOfItsTables has them written by the name of another table, and truncated.
func TestRowsOfAMergeTableAreThoseOfItsTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	w.exec("ALTER TABLE products ENGINE = MyISAM", "CREATE TABLE other (id int)", "INSERT INTO products VALUES (1, 'a', 'one')")
	f, stop := w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "one")
	merge := "CREATE TABLE merged (id bigint, category varchar(20), name varchar(20), PRIMARY KEY (id)) ENGINE = MERGE UNION = (products) INSERT_METHOD = LAST"
	for _, c := range []struct{ sql, want string }{
		{"INSERT INTO other VALUES (1); " + merge + "; UPDATE merged SET name = 'uno'", "uno"}, {"UPDATE merged SET name = 'eins'; ALTER TABLE merged UNION = ()", "eins"},
		{"ALTER TABLE merged UNION = (products); UPDATE merged SET name = 'un'; DROP TABLE merged; CREATE TABLE merged (id int)", "un"},
		{"DROP TABLE merged; " + merge + "; TRUNCATE merged", ""}, {"REPLACE INTO merged VALUES (1, 'a', 'bir')", "bir"},
	} {
		w.exec(strings.Split(c.sql, "; ")...)
		w.CatchUp(f)
		w.Reads(1, c.want)
	}
	stop()
	w.exec("UPDATE merged SET name = 'odin'")
	f, _ = w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "odin")
}

// TestALogThatLeavesChangesOutIsRefused has servers whose log does not have the rows of a mapped table.
func TestALogThatLeavesChangesOutIsRefused(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"--binlog-ignore-db=shop", "--binlog-do-db=other"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, startServer(t, setting).Socket)
			w.exec("CREATE DATABASE shop", "CREATE TABLE shop.products (id bigint PRIMARY KEY, name varchar(20))")
			f, err := New(w.config(w.Rows("shop.products")))
			expect.ErrorIs(t, err)
			feedtest.Says(t, f.SelfCheck(t.Context()), "does not log all changes", setting[2:8])
			feedtest.Run(w.Shop, f, nil)
			w.Await("the feed does not read", func() bool { return errors.Is(f.Stats().Err, errGaps) })
		})
	}
}

func TestAReplicaThatDoesNotLogWhatItReplicatesIsRefused(t *testing.T) {
	t.Parallel()
	primary, replica := startServer(t), startServer(t, "--server-id=2", "--log-slave-updates=OFF")
	relay, err := distance.Start(primary.Socket, 0)
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	host, port, _ := strings.Cut(relay.Addr(), ":")
	w := newWorld(t, replica.Socket)
	f, err := New(w.config())
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	w.exec("CHANGE MASTER TO master_host = '"+host+"', master_port = "+port+", master_user = 'root'", "START SLAVE")
	w.Await("it replicates", func() bool { return f.SelfCheck(t.Context()) != nil })
	feedtest.Says(t, f.SelfCheck(t.Context()), "log_slave_updates")
	w.exec("STOP SLAVE")
}

// TestALogThatBeginsAnewInvalidatesTheKindsWhole has logs that have the names of others, or are others.
func TestALogThatBeginsAnewInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	fill := strings.Repeat("x", 1000)
	for name, between := range map[string]func(w *world, restart func(before func(data string))){
		"RESET MASTER": func(w *world, _ func(func(string))) {
			w.exec("UPDATE products SET name = 'uno'", "RESET MASTER")
		},
		"RESET MASTER, and the log is longer than it was": func(w *world, _ func(func(string))) {
			w.exec("UPDATE products SET name = 'uno'", "RESET MASTER", "CREATE TABLE filler (t text)")
			for range 50 {
				w.exec("INSERT INTO filler VALUES ('" + fill + "')")
			}
		},
		"PURGE BINARY LOGS": func(w *world, _ func(func(string))) {
			w.exec("UPDATE products SET name = 'uno'", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
		},
		"another domain of GTIDs": func(w *world, _ func(func(string))) {
			w.exec("SET SESSION gtid_domain_id = 7", "SET SESSION server_id = 99", "UPDATE products SET name = 'uno'", "FLUSH BINARY LOGS")
		},
	} {
		for _, when := range []string{"while it runs", "while none runs"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, startServer(t).Socket)
				f, stop := w.run(w.config())
				w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
				w.CatchUp(f)
				w.Reads(1, "one")
				if when == "while none runs" {
					stop()
				}
				between(w, nil)
				if when == "while none runs" {
					f, _ = w.run(w.config())
				}
				w.CatchUpInTheEnd(f)
				w.Reads(1, "uno")
				w.exec("UPDATE products SET name = 'eins'")
				w.CatchUpInTheEnd(f)
				w.Reads(1, "eins")
			})
		}
	}
}

// TestATransactionOfALogThatIsAnotherOneSinceIsNotAwaitedForEver has a log begun anew after a transaction was read, and before it was looked for.
func TestATransactionOfALogThatIsAnotherOneSinceIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored int // statements before it, of three
		want   error
	}{"which is shorter than what is stored": {1, errShorter}, "which is not": {3, errUnseen}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, startServer(t).Socket)
			f, err := New(w.config())
			expect.ErrorIs(t, err)
			db := f.open()
			t.Cleanup(func() { _ = db.Close() }) // the server ends as well
			var from, read place
			for i, statement := range []string{"INSERT INTO products VALUES (1, 'a', 'one')", "UPDATE products SET name = 'uno'", "RESET MASTER"} {
				w.exec(statement)
				now, err := f.snapshot(t.Context(), db)
				expect.ErrorIs(t, err)
				if i+1 == c.stored {
					from = now
				}
				if now.number() > read.number() {
					read = now
				}
			}
			err = newReader(f, db, 0, from).settle(t.Context(), []uint64{read.number()})
			expect.ErrorIs(t, err, c.want)
			expect.Equal(t, "it gives the position up", f.givesUp(from, err) != "", errors.Is(c.want, errShorter))
		})
	}
}

// TestWhateverTheLogIsWrittenWithItsChangesAreRead has formats of the log that the server converts or compresses, and settings of sessions.
func TestWhateverTheLogIsWrittenWithItsChangesAreRead(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "keys-") //nolint:usetesting // another user reads it, who may not enter t.TempDir
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is temporary
	key := filepath.Join(dir, "keys")
	expect.ErrorIs(t, exec.Command("sh", "-c", "chmod 755 "+dir+" && echo '1;770A8A65DA156D24EE2A093277530142' > "+key).Run())
	for name, settings := range map[string][]string{
		"compressed": {"--log-bin-compress=ON", "--log-bin-compress-min-len=10"},
		"checksums":  {"--binlog-checksum=CRC32"}, "no checksums": {"--binlog-checksum=NONE"},
		"encrypted":     {"--plugin-load-add=file_key_management", "--file-key-management-filename=" + key, "--encrypt-binlog=ON"},
		"annotated":     {"--binlog-annotate-row-events=ON"},
		"small files":   {"--max-binlog-size=4096"},
		"synchronously": {"--sync-binlog=1", "--binlog-commit-wait-count=2", "--binlog-commit-wait-usec=1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, startServer(t, settings...).Socket)
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
			for i, statements := range [][]string{
				{"UPDATE products SET name = '%'"},
				{"SET time_zone = '+05:45', character_set_client = latin1", "UPDATE products SET name = '%'"},
				{"SET sql_mode = 'ANSI_QUOTES'", "BEGIN", "UPDATE products SET name = 'no'", "SAVEPOINT a", "DELETE FROM products", "ROLLBACK TO a", "UPDATE products SET name = '%'", "COMMIT"},
				{"SET binlog_row_image = NOBLOB", "UPDATE products SET name = '%'"},
				{"SET binlog_format = MIXED", "UPDATE products SET name = '%' LIMIT 5"},
				{"SET foreign_key_checks = 0, unique_checks = 0", "REPLACE INTO products VALUES (1, 'b', '%')"},
				{"XA START 'x'", "UPDATE products SET name = '%'", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"},
				{"FLUSH BINARY LOGS", "UPDATE products SET name = '%'", "FLUSH BINARY LOGS"},
				{"LOCK TABLES products WRITE", "UPDATE products SET name = '%'", "UNLOCK TABLES"},
				{"DELETE FROM products", "INSERT INTO products SELECT 1, 'a', '%'"},
			} {
				w.CatchUp(f)
				_, _ = w.Products.Get(t.Context(), 1) // it is remembered now
				want := "n" + string(rune('a'+i))
				for j := range statements {
					statements[j] = strings.ReplaceAll(statements[j], "%", want)
				}
				w.exec(append(statements, "SET time_zone = DEFAULT, character_set_client = utf8mb4, sql_mode = DEFAULT, binlog_row_image = DEFAULT, binlog_format = DEFAULT, foreign_key_checks = 1, unique_checks = 1")...)
				w.CatchUp(f)
				w.Reads(1, want)
			}
		})
	}
}

// TestADatabaseThatForgetsCommitsInvalidatesTheKindsWhole has a server that comes back with older data, and then one that has written without its log.
func TestADatabaseThatForgetsCommitsInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	data := filepath.Join(filepath.Dir(server.Socket), "data")
	w := newWorld(t, server.Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	server.Kill()
	if out, err := exec.Command("cp", "-a", data, data+".old").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	server.Start()
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUpInTheEnd(f)
	w.Reads(1, "uno")
	server.Kill()
	if out, err := exec.Command("sh", "-c", "rm -r "+data+" && mv "+data+".old "+data).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	server.Start()
	w.CatchUpInTheEnd(f)
	w.Reads(1, "one")
	server.Kill()
	server.Next = []string{"--skip-log-bin"}
	server.Start()
	w.exec("UPDATE products SET name = 'eins'")
	w.Await("it says so", func() bool { return errors.Is(f.Stats().Err, errGaps) })
	server.Kill()
	server.Next = nil
	server.Start()
	w.CatchUpInTheEnd(f)
	w.Reads(1, "eins")
	w.Logs("the log has left changes out")
}

func TestManyFeedsReadOneDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	feedtest.Many(w.Shop, w.name+".products", func(name string, guard *cacheguard.Guard, table cdc.Table) (feedtest.Feed, error) {
		cfg := w.config(table)
		cfg.Name, cfg.Guards = name, []*cacheguard.Guard{guard}
		return New(cfg)
	}, func() { w.exec("UPDATE products SET name = 'uno'") })
}
