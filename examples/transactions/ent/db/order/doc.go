// Package order is what ent makes of package schema. It is not in the repository: `make examples/transactions/ent/db/client.go` writes it here.
package order
