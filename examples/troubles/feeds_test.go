package troubles

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// startDatabase starts a PostgreSQL with products, and returns how the service connects to it.
func (f *fleet) startDatabase() string {
	f.Helper()
	f.database = servers.StartPostgres(f, func(address string) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		return err == nil && conn.Close(ctx) == nil
	}, "wal_level=logical")
	f.sql("CREATE TABLE products (id bigint PRIMARY KEY, name text)")
	f.sql("CREATE PUBLICATION shop FOR TABLE products")
	f.sql("CREATE ROLE app LOGIN REPLICATION")
	return fmt.Sprintf("host=%s user=app dbname=postgres", filepath.Dir(f.database.Socket))
}

// sql runs a statement as the administrator.
func (f *fleet) sql(statement string) (tag string) {
	f.Helper()
	conn, err := pgx.Connect(f.Context(), f.database.Address)
	if err != nil {
		f.Fatal(err)
	}
	defer conn.Close(f.Context())
	done, err := conn.Exec(f.Context(), statement)
	if err != nil {
		f.Fatal(err)
	}
	return done.String()
}

// awaitReader waits until an instance reads the log, and returns its number.
func (f *fleet) awaitReader() (reader int) {
	f.Helper()
	redistest.Await(f, "an instance reads the log", func() bool {
		for reader = range f.urls {
			if containsAll(f.ask(reader, "/metrics"), []string{`cacheguard_feed_reading{feed="shop"} 1`}) {
				return true
			}
		}
		return false
	})
	return reader
}

// unpublished takes the table out of the publication.
func (f *fleet) unpublished() {
	f.awaitReader()
	f.sql("ALTER PUBLICATION shop DROP TABLE products")
}

// unmappableRow renames the column that the key is made of, which the program does not know.
func (f *fleet) unmappableRow() {
	f.awaitReader()
	f.sql("ALTER TABLE products RENAME COLUMN id TO product_id")
	f.sql("INSERT INTO products VALUES (1, 'one')")
}

// unreadSlot takes the right to read the log from the service, whose slot stays.
func (f *fleet) unreadSlot() {
	f.awaitReader()
	f.sql("ALTER ROLE app NOREPLICATION")
	f.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'shop_cache'")
	f.growLog()
}

func (f *fleet) growLog() {
	f.sql("SELECT pg_logical_emit_message(false, 'other', repeat('x', 1000000))")
}

func TestAFeedThatIsBehindIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "The feed is behind")
	f.unpublished()
	f.checks(nil, "feed shop: changes wait to be invalidated", "does not have table public.products")
	f.ctl(1, "cdc status", "PROBLEM", "does not have table public.products")
	i := f.failing()
	f.logs(i, "changes wait to be invalidated", "does not have table public.products")
	f.shows(i, "changes wait to be invalidated", func(s *shown) bool { return len(s.Feeds) == 1 && s.Feeds[0].Problem != "" })
	const mend = "ALTER PUBLICATION shop ADD TABLE public.products"
	f.documented(mend)
	f.sql(mend)
	f.ctl(0, "cdc catchup shop", "has caught up")
	f.ctl(0, "cdc status", "reads")
}

func TestARowWithoutKeysIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "A feed invalidates kinds whole")
	i := f.awaitReader()
	f.unmappableRow()
	f.logs(i, "the keys of a changed row are not known", "public.products: column id")
	f.counts(i, "cacheguard_feed_unmapped_total", `feed="shop"`, nil)
	f.counts(i, "cacheguard_feed_whole_total", `feed="shop"`, nil)
	f.checks(nil, "the keys of 1 row were not known")
}

// failing is the number of an instance whose feed fails.
func (f *fleet) failing() (i int) {
	f.Helper()
	f.documented("`cacheguard_feed_failing")
	redistest.Await(f, "the feed of an instance fails", func() bool {
		for i = range f.urls {
			if containsAll(f.ask(i, "/metrics"), []string{`cacheguard_feed_failing{feed="shop"} 1`}) {
				return true
			}
		}
		return false
	})
	return i
}

func TestASlotThatNobodyReadsIsFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "The slot fills the disk")
	f.unreadSlot()
	f.ctl(1, "cdc status", "none of these instances reads", "KEPT")
	f.logs(f.failing(), "changes wait to be invalidated", "role")
	f.measures(0, "cacheguard_feed_reading", `feed="shop"`, "0", nil)
	f.counts(0, "cacheguard_feed_retained_bytes", `feed="shop"`, f.growLog)
	f.documented("pg_replication_slots")
	f.sql("ALTER ROLE app REPLICATION")
	f.ctl(0, "cdc catchup shop", "has caught up")
	f.ctl(0, "cdc status", "reads")
}
