package outbox

import (
	"database/sql"
	"log"
)

// DatabaseOfExamples is an empty database for the examples. It has one connection, which is all of it.
func DatabaseOfExamples() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// RedisOfExamples is the address of a Redis for the examples.
func RedisOfExamples() string { return shared.Addr() }
