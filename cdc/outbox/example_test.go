package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/outbox"
)

// Triggers note in the database what is written past the cache, and the feed invalidates it. The database is SQLite.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	db, rdb := outbox.DatabaseOfExamples(), redis.NewClient(&redis.Options{Addr: outbox.RedisOfExamples()})
	defer db.Close()
	defer rdb.Close()

	// Once, in a migration:
	migration := append(outbox.CreateTable(outbox.SQLite), "CREATE TABLE products (id integer PRIMARY KEY, name text)", "INSERT INTO products VALUES (42, 'shoes')")
	migration = append(migration, outbox.Triggers(outbox.SQLite, "products", "id")...)
	for _, statement := range migration {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}

	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product",
		Load: func(ctx context.Context, id int64) (name string, err error) {
			err = db.QueryRowContext(ctx, "SELECT name FROM products WHERE id = ?", id).Scan(&name)
			return name, err
		},
		NotFound: sql.ErrNoRows,
	})
	if err != nil {
		log.Fatal(err)
	}

	feed, err := outbox.New(db, outbox.Config{
		Dialect: outbox.SQLite,
		Tables:  []cdc.Table{cdc.Rows("products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
		Guards:  []*cacheguard.Guard{guard},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- feed.Run(ctx) }()

	name, err := products.Get(ctx, 42)
	fmt.Println(name, err)
	if _, err := db.ExecContext(ctx, "UPDATE products SET name = 'boots' WHERE id = 42"); err != nil { // past the cache
		log.Fatal(err)
	}
	if err := feed.CatchUp(ctx); err != nil {
		log.Fatal(err)
	}
	name, err = products.Get(ctx, 42)
	fmt.Println(name, err)
	stop()
	fmt.Println(<-ended)
	// Output:
	// shoes <nil>
	// boots <nil>
	// context canceled
}
