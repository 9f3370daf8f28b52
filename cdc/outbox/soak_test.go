package outbox

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled runs a few rounds; SOAK=100 a hundred.
func TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		soak(t, SQLite, "", feedtest.SQLite, nil)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := servers.StartPostgres(t, func(address string) bool { return answers("pgx", address) })
		soak(t, PostgreSQL, server.Address, feedtest.PostgreSQL, func() {
			server.Kill()
			server.Start()
		})
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		server := servers.StartMariaDB(t, func(socket string) bool { return answers("mysql", "root@unix("+socket+")/") })
		dialect := feedtest.MariaDB
		dialect.NoTruncate = true // there are no triggers for it
		soak(t, MySQL, "root@unix("+server.Socket+")/", dialect, func() {
			server.Kill()
			server.Start()
		})
	})
}

func soak(t *testing.T, d Dialect, server string, statements feedtest.Dialect, restart func()) {
	rdb := redistest.Start(t)
	w := newWorldAt(t, d, server, rdb.Client(t))
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint)")
	for _, statement := range Triggers(d, "notes", "product") {
		w.exec(statement)
	}
	w.Open(rdb)
	fleet := feedtest.StartFleet(w.Shop, 2, func() *redistest.Process {
		return redistest.Child(t, "TestAReader", "DIALECT="+string(d), "DRIVER="+w.driver, "SOURCE="+w.source, "REDIS="+rdb.Addr(), "PREFIX="+w.Prefix)
	})
	if d == SQLite {
		fleet.Locked = w.locked
	}
	cfg := w.config()
	cfg.Tables = append(cfg.Tables, feedtest.Notes("notes", w.Products))
	f, err := New(w.db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &feedtest.Soak{Shop: w.Shop, Dialect: statements, Feed: f, Exec: feedtest.Attempt(w.db), Truth: feedtest.Products(w.db), Fleet: fleet}
	s.Position = func(context.Context) uint64 { return 0 } // there is none: what is read is deleted
	s.Troubles = s.Common(rdb)
	if restart != nil {
		s.Troubles = append(s.Troubles, feedtest.Trouble{Name: "the database was restarted", Make: restart})
	}
	s.Run(feedtest.Rounds(2)) // of each database; the other feeds have a round for each trouble
}

// locked says whether nobody can write for a while.
func (w *world) locked() bool {
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	_, err := w.db.ExecContext(ctx, "UPDATE notes SET product = NULL WHERE false")
	return err != nil
}

// TestAReader is a child process of tests with several.
func TestAReader(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	db, err := sql.Open(os.Getenv("DRIVER"), os.Getenv("SOURCE"))
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})
	guard, products := feedtest.NewCache(t, rdb, os.Getenv("PREFIX"), nil, feedtest.LoadNothing)
	feedtest.RunChild(t, func(log *slog.Logger) (*Feed, error) {
		return New(db, Config{
			Dialect: Dialect(os.Getenv("DIALECT")), Guards: []*cacheguard.Guard{guard}, Poll: 10 * time.Millisecond, Logger: log,
			Tables: []cdc.Table{feedtest.ByID("products", products), feedtest.Notes("notes", products)},
		})
	})
}
