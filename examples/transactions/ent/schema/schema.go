// Package schema describes the tables to ent, which generates package db from it.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Product is a row.
type Product struct{ ent.Schema }

// Fields are its columns.
func (Product) Fields() []ent.Field {
	return []ent.Field{field.Int64("id"), field.String("name"), field.String("category"), field.Int64("cents"), field.Int64("stock")}
}

// Order is a row.
type Order struct{ ent.Schema }

// Fields are its columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{field.Int64("id"), field.Int64("customer"), field.Int64("product_id"), field.Int64("count")}
}

// Edges lead to the product.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{edge.To("product", Product.Type).Field("product_id").Unique().Required()}
}
