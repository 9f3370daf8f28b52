package feedtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// Dialect is what databases write differently.
type Dialect struct {
	Upsert string // what follows an INSERT so that a row that is there gets the new name
	Series string // the numbers from 0 to %d, as n

	NoTruncate bool // the feed does not see TRUNCATE
}

// The dialects.
var (
	PostgreSQL = Dialect{Upsert: "ON CONFLICT (id) DO UPDATE SET name = excluded.name", Series: "(SELECT generate_series(0, %d) AS n) AS numbers"}
	MariaDB    = Dialect{Upsert: "ON DUPLICATE KEY UPDATE name = VALUES(name)", Series: "(SELECT seq AS n FROM seq_0_to_%d) AS numbers"}
	SQLite     = Dialect{
		Upsert: PostgreSQL.Upsert, Series: "(WITH RECURSIVE numbers(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) SELECT n FROM numbers) AS numbers",
	}
)

func (d Dialect) series(last int) string { return fmt.Sprintf(d.Series, last) }

// random is a transaction of products(id, category, name) and notes(id, product).
func (d Dialect) random(random *rand.Rand) []string {
	id := func() int64 { return random.Int64N(soakKeys) }
	name := fmt.Sprint(random.Uint64())
	rename := fmt.Sprintf("UPDATE products SET name = '%s' WHERE id = %d", name, id())
	switch random.IntN(11) {
	case 0, 1:
		return []string{fmt.Sprintf("INSERT INTO products VALUES (%d, 'a', '%s') %s", id(), name, d.Upsert)}
	case 2:
		return []string{fmt.Sprintf("UPDATE products SET name = '%s' WHERE id BETWEEN %d AND %d", name, id(), id())}
	case 3:
		return []string{fmt.Sprintf("DELETE FROM products WHERE id = %d", id())}
	case 4:
		return []string{fmt.Sprintf("UPDATE products SET id = %d WHERE id = %d", id(), id())}
	case 5:
		return []string{"BEGIN", fmt.Sprintf("UPDATE products SET name = '%s'", name), "ROLLBACK"}
	case 6:
		return []string{"BEGIN", rename, "SAVEPOINT s", "DELETE FROM products", "ROLLBACK TO SAVEPOINT s", fmt.Sprintf("DELETE FROM products WHERE id = %d", id()), "COMMIT"}
	case 7:
		return []string{"BEGIN", rename, fmt.Sprintf("INSERT INTO notes VALUES (%d, %d)", random.Int64(), id()), "COMMIT"}
	case 8:
		return []string{fmt.Sprintf("INSERT INTO products SELECT n, 'a', '%s' FROM %s WHERE true %s", name, d.series(3*soakKeys), d.Upsert)}
	case 9:
		if d.NoTruncate || random.IntN(10) > 0 {
			return []string{rename}
		}
		return []string{"TRUNCATE TABLE products"}
	}
	return []string{fmt.Sprintf("INSERT INTO products SELECT n, 'a', '%s' FROM %s WHERE n > 1000 %s", name, d.series(4000), d.Upsert)}
}

// Notes maps a table of notes about products, by its column product.
func Notes(table string, products *cacheguard.Cache[int64, string]) cdc.Table {
	return cdc.Table{Name: table, Kinds: []cdc.Kind{products}, Changed: func(c cdc.Change) cacheguard.Changes {
		var ids []int64
		for _, row := range []cdc.Row{c.Old, c.New} {
			if !row.IsZero() {
				id, _ := row.Int64("product") // the feed has the error
				ids = append(ids, id)
			}
		}
		return products.Changes(ids...)
	}}
}
