package backends

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// What is in the database, and how many queries it runs at a time. Further ones queue for a connection, as with any
// database: eight services with five connections each would come to the same.
const (
	Products    = 10_000
	Connections = 40
)

// Product is a row of the database.
type Product struct {
	ID    int
	Name  string
	Cents int // the price
}

// ProductDB is a table of products which counts its queries, and takes its time for each.
type ProductDB struct {
	db        *sql.DB
	name      string
	table     string
	created   bool // whether table is there and ours to drop
	cleanUp   func() error
	queryTime time.Duration
	queries   atomic.Int64
}

// Database opens the database that DATABASE_URL names, or an embedded one, and fills a new table with products. Each
// query is made to take queryTime.
func Database(ctx context.Context, queryTime time.Duration) (*ProductDB, error) {
	d := &ProductDB{table: "cacheguard_example_" + strings.ToLower(rand.Text()[:10]), queryTime: queryTime}
	if err := d.open(); err != nil {
		return nil, err
	}
	d.db.SetMaxOpenConns(Connections)
	d.db.SetMaxIdleConns(Connections)
	if err := d.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, err), d.Close())
	}
	return d, nil
}

func (d *ProductDB) open() (err error) {
	if raw := os.Getenv("DATABASE_URL"); raw != "" {
		d.name, d.cleanUp = "PostgreSQL of DATABASE_URL", func() error { return nil }
		d.db, err = openPostgres(raw)
		return err
	}
	d.name = "embedded SQLite"
	d.db, d.cleanUp, err = openSQLite()
	return err
}

// fill creates the table. Both databases understand these statements.
func (d *ProductDB) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := d.db.PingContext(ctx); err != nil {
		return err
	}
	create := `CREATE TABLE ` + d.table + ` (id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL)`
	if _, err := d.db.ExecContext(ctx, create); err != nil {
		return err
	}
	d.created = true
	insert := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO ` + d.table + ` SELECT i, 'Product ' || i, 100 + i * 37 % 9900 FROM n`
	_, err := d.db.ExecContext(ctx, insert, Products)
	return err
}

// Product reads a product. It returns cacheguard.ErrNotFound if there is none.
func (d *ProductDB) Product(ctx context.Context, id int) (Product, error) {
	d.queries.Add(1)
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return Product{}, fmt.Errorf("product %d: %w", id, err)
	}
	defer conn.Close()

	select { // this is what makes the query slow: it keeps its connection busy meanwhile
	case <-time.After(d.queryTime):
	case <-ctx.Done():
		return Product{}, fmt.Errorf("product %d: %w", id, context.Cause(ctx))
	}
	p := Product{ID: id}
	query := `SELECT name, cents FROM ` + d.table + ` WHERE id = $1`
	switch err := conn.QueryRowContext(ctx, query, id).Scan(&p.Name, &p.Cents); {
	case errors.Is(err, sql.ErrNoRows):
		return Product{}, cacheguard.ErrNotFound
	case err != nil:
		return Product{}, fmt.Errorf("product %d: %w", id, err)
	}
	return p, nil
}

// Queries returns how many queries were asked so far.
func (d *ProductDB) Queries() int64 { return d.queries.Load() }

// String names the database.
func (d *ProductDB) String() string { return d.name }

// Close drops the table, and nothing else.
func (d *ProductDB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var dropped error
	if d.created {
		if _, err := d.db.ExecContext(ctx, `DROP TABLE `+d.table); err != nil {
			dropped = fmt.Errorf("drop table %s: %w", d.table, err)
		}
	}
	return errors.Join(dropped, d.db.Close(), d.cleanUp())
}
