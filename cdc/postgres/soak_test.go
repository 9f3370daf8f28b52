package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled runs a few rounds; SOAK=100 a hundred.
func TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Address)
	w.exec(`DROP TABLE products`)
	w.exec(`CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id)`)
	w.exec(`CREATE TABLE few PARTITION OF products FOR VALUES FROM (0) TO (30)`)
	w.exec(`CREATE TABLE others PARTITION OF products DEFAULT`)
	w.exec(`CREATE TABLE notes (id bigint PRIMARY KEY, product bigint)`)
	w.exec(`ALTER PUBLICATION shop ADD TABLE products, notes`)
	w.exec(`ALTER TABLE notes REPLICA IDENTITY FULL`)
	relay, err := distance.Start(server.Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	host, port, _ := strings.Cut(relay.Addr(), ":")
	far := fmt.Sprintf("ADDR=host=%s port=%s user=test dbname=%s sslmode=disable", host, port, w.slot)
	fleet := feedtest.StartFleet(w.Shop, 2, func() *redistest.Process { return w.child("NOTES=1", far) })
	f, err := New(w.config(w.Rows("public.products"), feedtest.Notes("public.notes", w.Products)))
	if err != nil {
		t.Fatal(err)
	}
	s := &feedtest.Soak{Shop: w.Shop, Dialect: feedtest.PostgreSQL, Feed: f, Exec: w.attempt, Truth: w.truth, Position: w.confirmed, Fleet: fleet}
	s.Troubles = append(s.Common(w.redis), []feedtest.Trouble{
		{Name: "the connections were ended", Make: w.endReaders},
		{Name: "the slot was dropped", Make: func() {
			w.endReaders()
			_, _ = w.pool.Exec(w.Context(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", w.slot) // unless it is read again
		}},
		{Name: "the network was cut", Make: relay.Break},
		{Name: "the database was restarted", Rewinds: true, Make: func() {
			server.Kill()
			server.Start()
		}},
	}...)
	s.Run(feedtest.Rounds(len(s.Troubles)))
}

func (w *world) endReaders() {
	w.Helper()
	w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
}

func (w *world) attempt(ctx context.Context, statements []string) {
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return
	}
	defer conn.Release()
	_, _ = conn.Conn().PgConn().Exec(ctx, strings.Join(statements, ";")).ReadAll() // what fails is rolled back
	_, _ = conn.Exec(ctx, "ROLLBACK")                                              // what is open
}

func (w *world) truth(ctx context.Context) (map[int64]string, error) {
	rows, err := w.pool.Query(ctx, "SELECT id, name FROM products")
	if err != nil {
		return nil, err
	}
	names := make(map[int64]string)
	var id int64
	var name string
	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		names[id] = name
		return nil
	})
	return names, err
}

// confirmed is the position as a number; 0: nobody knows.
func (w *world) confirmed(ctx context.Context) uint64 {
	var lsn string
	if w.pool.QueryRow(ctx, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", w.slot).Scan(&lsn) != nil {
		return 0
	}
	position, _ := pglogrepl.ParseLSN(lsn) // 0 is not known
	return uint64(position)
}
