package sqldb

import (
	"context"
	"errors"

	"github.com/cacheguard/go/examples/internal/backends"
)

// With opens the Redis and the database of an example, runs it, and closes both.
func With(ctx context.Context, run func(*backends.RedisServer, *DB) error) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	db, err := Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return run(server, db)
}
