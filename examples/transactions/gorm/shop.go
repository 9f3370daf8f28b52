// Package gorm is the shop with GORM.
package gorm

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
)

// Shop is an instance of the service.
type Shop struct {
	shop.Caches
	guard *cacheguard.Guard
	db    *gorm.DB
}

// Order is a row.
type Order struct{ ID, Customer, ProductID, Count int64 }

// New makes a shop. Its user closes the Guard and the database.
func New(guard *cacheguard.Guard, db *gorm.DB) (s *Shop, err error) {
	s = &Shop{guard: guard, db: db}
	s.Caches, err = shop.NewCaches(guard, shop.Absence{NotFound: gorm.ErrRecordNotFound}, s.product, s.orders)
	return s, err
}

// transact runs a transaction that changes what is named, and whatever else write names.
func (s *Shop) transact(ctx context.Context, c cacheguard.Changes, write func(*gorm.DB, *cacheguard.Intent) error) (err error) {
	in, err := s.guard.Intend(ctx, c)
	if err != nil {
		return err // nothing was written
	}
	// After the commit, a rollback or a panic.
	defer func() { err = errors.Join(err, in.Done(ctx)) }()
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return write(tx, in) }) // commits
}

// Buy sells pieces of a product. It is known before which rows it changes.
func (s *Shop) Buy(ctx context.Context, customer, product, count int64) error {
	return s.transact(ctx, s.Sale(customer, product), func(tx *gorm.DB, _ *cacheguard.Intent) error {
		err := tx.Model(&shop.Product{ID: product}).Update("stock", gorm.Expr("stock - ?", count)).Error
		if err != nil {
			return err // there are not as many
		}
		return tx.Create(&Order{Customer: customer, ProductID: product, Count: count}).Error
	})
}

// Discount lowers the prices of a category. The statement says which products those are.
func (s *Shop) Discount(ctx context.Context, category string, percent int64) error {
	joins := cacheguard.Changes{Tags: []string{shop.PricesOfProducts}}
	return s.transact(ctx, joins, func(tx *gorm.DB, in *cacheguard.Intent) error {
		var changed []shop.Product
		err := tx.Model(&changed).Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}}}).
			Where("category = ?", category).Update("cents", gorm.Expr("cents * (100 - ?) / 100", percent)).Error
		if err != nil {
			return err
		}
		ids := make([]int64, len(changed))
		for i, p := range changed {
			ids[i] = p.ID
		}
		return in.Also(ctx, s.Products.Changes(ids...))
	})
}

func (s *Shop) product(ctx context.Context, id int64) (p shop.Product, err error) {
	err = s.db.WithContext(ctx).First(&p, id).Error
	return p, err
}

func (s *Shop) orders(ctx context.Context, customer int64) (all []shop.Line, err error) {
	err = s.db.WithContext(ctx).Model(&Order{}).Joins("JOIN products p ON p.id = product_id").Where("customer = ?", customer).
		Select(`orders.id AS "order", p.name AS product, orders.count, p.cents`).Scan(&all).Error
	return all, err
}
