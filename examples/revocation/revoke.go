package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/outbox"
)

// SignIn begins a session. It is a Put, as somebody may have tried the token before.
func (a *Access) SignIn(ctx context.Context, token string, user int64, ends time.Time) error {
	id := hash(token)
	return a.sessions.Put(ctx, id, func(ctx context.Context) (int64, error) {
		describe(ctx, user, ends)
		_, err := a.db.ExecContext(ctx, `INSERT INTO sessions VALUES ($1, $2, $3)`, id, user, ends.Unix())
		return user, err
	})
}

// RevokeKey ends an API key: when it returned nil, no instance admits it.
func (a *Access) RevokeKey(ctx context.Context, token string) error {
	id := hash(token)
	return a.apiKeys.Update(ctx, id, func(ctx context.Context) error {
		_, err := a.db.ExecContext(ctx, `DELETE FROM api_keys WHERE id = $1`, id)
		return err
	})
}

// SignOut ends a session: when it returned nil, no instance admits it for longer than MaxLag.
func (a *Access) SignOut(ctx context.Context, token string) error {
	id := hash(token)
	return a.sessions.Update(ctx, id, func(ctx context.Context) error {
		_, err := a.db.ExecContext(ctx, `DELETE FROM sessions WHERE id = $1`, id)
		return err
	})
}

// SetFlag turns a feature on or off.
func (a *Access) SetFlag(ctx context.Context, name string, on bool) error {
	return a.flags.Update(ctx, name, func(ctx context.Context) error {
		_, err := a.db.ExecContext(ctx, `INSERT INTO flags (name, enabled) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled`, name, on)
		return err
	})
}

// Dismiss ends all that a user has, in one transaction. If this process dies in the middle of it, the intents end by themselves.
func (a *Access) Dismiss(ctx context.Context, user int64) error {
	in, err := a.guard.Intend(ctx, cacheguard.Changes{Keys: []string{a.permissions.Key(user)}, Tags: []string{ownedBy(user)}})
	if err != nil {
		return err // nothing is written
	}
	defer in.Done(ctx) // does nothing the second time
	if err := a.deleteUser(ctx, user); err != nil {
		return err
	}
	return in.Done(ctx)
}

func (a *Access) deleteUser(ctx context.Context, user int64) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, table := range []string{"permissions", "api_keys", "sessions"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, user); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Feed invalidates what others change, such as an administrator with SQL. Each instance runs one.
func (a *Access) Feed() (*outbox.Feed, error) {
	id := func(r cdc.Row) (string, error) { return r.String("id") }
	return outbox.New(a.db, outbox.Config{
		Dialect: outbox.SQLite,
		Guards:  []*cacheguard.Guard{a.guard},
		Tables: []cdc.Table{
			cdc.Rows("sessions", a.sessions, id),
			cdc.Rows("api_keys", a.apiKeys, id),
			cdc.Rows("permissions", a.permissions, func(r cdc.Row) (int64, error) { return r.Int64("user_id") }),
			cdc.Rows("flags", a.flags, func(r cdc.Row) (string, error) { return r.String("name") }),
		},
	})
}

// migrate makes the tables, and the triggers that note what is changed.
func migrate(ctx context.Context, db *sql.DB) error {
	statements := []string{
		`CREATE TABLE sessions (id text PRIMARY KEY, user_id integer NOT NULL, ends integer NOT NULL)`,
		`CREATE TABLE api_keys (id text PRIMARY KEY, user_id integer NOT NULL)`,
		`CREATE TABLE permissions (user_id integer, name text, PRIMARY KEY (user_id, name))`,
		`CREATE TABLE flags (name text PRIMARY KEY, enabled boolean NOT NULL)`,
	}
	statements = append(statements, outbox.CreateTable(outbox.SQLite)...)
	for table, key := range map[string]string{"sessions": "id", "api_keys": "id", "permissions": "user_id", "flags": "name"} {
		statements = append(statements, outbox.Triggers(outbox.SQLite, table, key)...)
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
