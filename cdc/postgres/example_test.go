package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/postgres"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The feed invalidates what somebody writes past the cache, for a cache of a table's rows.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	db, guard, closeAll := open(ctx)
	defer closeAll()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product",
		Load: func(ctx context.Context, id int64) (name string, err error) {
			err = db.QueryRow(ctx, "SELECT name FROM example_products WHERE id = $1", id).Scan(&name)
			return name, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	address := postgres.AddressOfExamples() // postgres://…
	feed, err := postgres.New(postgres.Config{
		Conn: address, Publication: "example", Slot: "example_cache",
		Tables: []cdc.Table{
			cdc.Rows("public.example_products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") }),
		},
		Guards: []*cacheguard.Guard{guard},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := feed.SelfCheck(ctx); err != nil {
		log.Fatal(err) // with the statement that mends it
	}
	ended := make(chan error)
	go func() { ended <- feed.Run(ctx) }()

	name, err := products.Get(ctx, 42)
	fmt.Println(name, err)
	if _, err := db.Exec(ctx, "UPDATE example_products SET name = 'boots' WHERE id = 42"); err != nil { // past the cache
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

func open(ctx context.Context) (*pgxpool.Pool, *cacheguard.Guard, func()) {
	db, err := pgxpool.New(ctx, postgres.AddressOfExamples())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(ctx, `CREATE TABLE example_products (id bigint PRIMARY KEY, name text);
		INSERT INTO example_products VALUES (42, 'shoes'); CREATE PUBLICATION example FOR TABLE example_products`); err != nil {
		log.Fatal(err)
	}
	rdb, stop, err := redisOfExamples()
	if err != nil {
		log.Fatal(err)
	}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example" + fmt.Sprint(os.Getpid())})
	if err != nil {
		log.Fatal(err)
	}
	return db, guard, func() {
		db.Close()
		_ = guard.Close() // always nil
		_ = rdb.Close()   // nobody uses it any more
		stop()
	}
}

func redisOfExamples() (*redis.Client, func(), error) {
	server, stop, err := redistest.StartForMain()
	if err != nil {
		return nil, nil, err
	}
	return redis.NewClient(&redis.Options{Addr: server.Addr()}), stop, nil
}
