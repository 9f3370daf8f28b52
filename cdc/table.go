package cdc

import (
	"context"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Table says what changes of a table invalidate.
type Table struct {
	// Name is the table's, with its schema or database, as the database writes it: public.products, shop.products. Required. A partitioned
	// table stands for its partitions.
	Name string

	// Changed returns the keys and tags that a change of a row makes old: those of the old row and of the new one. It is called for each row,
	// by one goroutine, so it must be quick. It may return nothing. Required. If a key or a tag is empty, if it panics, or a method of Row returns an error,
	// the keys are not known: Kinds are invalidated whole, the log says for which column, and Stats.Unmapped counts the row.
	//
	// SelfCheck calls it, too, with rows that do not exist and whose Change has no time, to see which columns it asks for.
	Changed func(Change) cacheguard.Changes

	// Kinds are the Caches with entries that Changed names, by key or by tag. They are invalidated whole when the log cannot say which rows
	// have changed: after a TRUNCATE, and when the position in it is lost. Default: everything in those of the feed's Guards
	// of which no Cache is named here.
	Kinds []Kind

	// Exact are columns of keys and tags whose rows the service finds by the database's own text only, as Exactly sees to in its loader. SelfCheck
	// names other columns of keys and tags by which the database finds a row under several texts, as it does by a collation that ignores case: entries under another text
	// would not be invalidated. A Changed that makes one key of all of them, as CacheConfig.Key does for Rows, needs none of it. Default: none.
	Exact []string
}

// Kind is a *cacheguard.Cache.
//
// Where values of one are made of cached values of another, as a view is of a product, the feed's Config has both in its Order, the products first.
// The feed then invalidates the keys of products, waits until Redis has acknowledged that, and invalidates those of views: a load in between
// would make, and store, a view of the old product. Keys of a Kind that is not in Order are invalidated with the first one's. What may belong to several Kinds,
// tags and Guards that are invalidated whole, is invalidated with each.
type Kind interface {
	Name() string
	InvalidateAll(ctx context.Context) error
	Guard() *cacheguard.Guard
}

// Op is what happened to a row.
type Op string

// The kinds of changes to a row.
const (
	Insert Op = "insert"
	Update Op = "update"
	Delete Op = "delete"
)

// Change is the change of a row.
type Change struct {
	Op  Op
	Old Row // before it. It has what the log has: see the package of the feed. Not there for an Insert
	New Row // after it. Not there for a Delete

	// Committed is when its transaction was, by the database's clock. MariaDB has the second when the statement began, and the outbox
	// when the trigger ran.
	Committed time.Time
}

// Rows is a Table whose rows are the things of a Cache. key returns the key of a row. It is called with the old row and with the new one, so
// that a row whose key changes invalidates both. It may use the columns that the log has of old rows, such as the primary key's.
func Rows[K comparable, V any](table string, cache *cacheguard.Cache[K, V], key func(Row) (K, error)) Table {
	if cache == nil || key == nil {
		return Table{Name: table} // the feed's New refuses it
	}
	changed := func(c Change) cacheguard.Changes {
		var ids []K
		for _, row := range []Row{c.Old, c.New} {
			if row.IsZero() {
				continue
			}
			id, err := key(row)
			if err != nil {
				row.refuse(err)
				continue
			}
			ids = append(ids, id)
		}
		return cache.Changes(ids...)
	}
	return Table{Name: table, Changed: changed, Kinds: []Kind{cache}}
}
