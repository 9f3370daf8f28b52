package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// late writes in a transaction that others begin and commit, as the transactions of most services are. By the time of the commit, the
// function that has the statement has returned.
type late struct {
	invalidating
	statement func(ctx context.Context, tx *sql.Tx, id int) (cents int64, done func(context.Context) error, err error)
}

// Raise stands for the code that is far away, and knows of no cache.
func (s late) Raise(ctx context.Context, id int) (int64, error) {
	tx, err := s.db.db.Writer.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after the commit
	cents, done, err := s.statement(ctx, tx, id)
	if err != nil {
		return 0, err
	}
	if err := answer(ctx, s.db.queryTime); err != nil { // other statements of the transaction
		return 0, errors.Join(err, tx.Rollback(), done(ctx))
	}
	s.db.commits()
	return cents, errors.Join(tx.Commit(), done(ctx))
}

// openCommittingLate has the mistake: the statement is in an Update, and the commit is not. Readers in between load the old price, and it
// stays for the TTL.
func openCommittingLate(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	s, err := openInvalidating(rdb, db, prefix)
	if err != nil {
		return nil, err
	}
	guarded := s.(invalidating)
	return late{guarded, func(ctx context.Context, tx *sql.Tx, id int) (cents int64, _ func(context.Context) error, err error) {
		err = guarded.Update(ctx, priceKey(id), func(ctx context.Context) (err error) {
			cents, err = db.raiseIn(ctx, tx, id)
			return err
		})
		return cents, func(context.Context) error { return nil }, err
	}}, nil
}

// openIntending announces what the statement changes, and says so again after the commit. Also when the writer dies in between, no old
// price stays for longer than the intent.
func openIntending(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	s, err := openInvalidating(rdb, db, prefix)
	if err != nil {
		return nil, err
	}
	guarded := s.(invalidating)
	return late{guarded, func(ctx context.Context, tx *sql.Tx, id int) (int64, func(context.Context) error, error) {
		in, err := guarded.Intend(ctx, cacheguard.Changes{Keys: []string{priceKey(id)}})
		if err != nil {
			return 0, nil, err
		}
		cents, err := db.raiseIn(ctx, tx, id)
		if err != nil {
			return 0, nil, errors.Join(err, in.Done(ctx))
		}
		return cents, in.Done, nil
	}}, nil
}
