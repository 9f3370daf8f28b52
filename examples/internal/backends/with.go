package backends

import (
	"context"
	"errors"
)

// With opens the Redis and the database of an example, runs it, and closes both.
func With(ctx context.Context, run func(*RedisServer, *DB) error) (err error) {
	server, err := Redis(ctx)
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
