// Package shop is what the five programs share: the tables, what is cached of them, and what a POST answers.
package shop

import (
	"context"
	_ "embed" // for the tables
	"net/http"
	"strconv"

	"github.com/cacheguard/go/cacheguard"
)

// Schema creates the tables.
//
//go:embed schema.sql
var Schema string

// Product is a row.
type Product struct {
	ID             int64
	Name, Category string
	Cents, Stock   int64
}

// Line is a row of a join: an order, and the name and the price of its product.
type Line struct {
	Order   int64
	Product string
	Count   int64
	Cents   int64
}

// Caches are what a program remembers.
type Caches struct {
	Products *cacheguard.Cache[int64, Product]
	Orders   *cacheguard.Cache[int64, []Line] // by customer
}

// Absence is how a library says that there is no such row: the error that callers get on every instance and, where each load makes one of its own, how
// it is recognised.
type Absence struct {
	NotFound   error
	IsNotFound func(error) bool
}

// NewCaches caches what the functions load.
func NewCaches(
	g *cacheguard.Guard, none Absence, product func(context.Context, int64) (Product, error), orders func(context.Context, int64) ([]Line, error),
) (c Caches, err error) {
	c.Products, err = cacheguard.NewCache(g, cacheguard.CacheConfig[int64, Product]{
		Name: "product", Load: product, NotFound: none.NotFound, IsNotFound: none.IsNotFound, ErrorCodec: PgErrors{},
	})
	if err != nil {
		return c, err
	}
	c.Orders, err = cacheguard.NewCache(g, cacheguard.CacheConfig[int64, []Line]{
		Name: "orders", Load: orders, ErrorCodec: PgErrors{}, Tags: func(customer int64, _ []Line) []string { return []string{OfCustomer(customer), PricesOfProducts} },
	})
	return c, err
}

// OfCustomer is the tag of whatever shows the orders of a customer.
func OfCustomer(id int64) string { return "customer:" + strconv.FormatInt(id, 10) }

// PricesOfProducts is the tag of joins that show prices. It stands for the whole table: a statement that changes prices names it, and need not know
// in which joins they are. A sale changes no price, so it does not.
const PricesOfProducts = "table:products.cents"

// Sale is what a sale changes.
func (c Caches) Sale(customer, product int64) cacheguard.Changes {
	changes := c.Products.Changes(product)
	changes.Tags = []string{OfCustomer(customer)}
	return changes
}

// Status is what a POST answers. An error of Done after a commit is none for the client: to repeat the transaction would be wrong.
var Status = map[cacheguard.Class]int{
	cacheguard.ClassNone: http.StatusCreated, cacheguard.ClassCommitted: http.StatusCreated, cacheguard.ClassAbsent: http.StatusNotFound,
	cacheguard.ClassUnavailable: http.StatusServiceUnavailable, cacheguard.ClassCanceled: http.StatusGatewayTimeout, cacheguard.ClassFailed: http.StatusInternalServerError,
}
