// Package db is what ent makes of package schema. It is not in the repository: `make examples/transactions/ent/db/client.go` writes it here.
package db

import (
	// What the generated code imports, so that go.mod and go.sum are the same before there is any.
	_ "entgo.io/ent/dialect/sql/schema"
	_ "entgo.io/ent/dialect/sql/sqlgraph"
)
