// Package transactions is one small shop five times: written with database/sql, pgx, GORM, sqlc and ent. Each commits its transactions itself, and tells the
// cache of them with an intent. The tests run all five on a PostgreSQL: docs/transactions.md explains what they show.
package transactions
