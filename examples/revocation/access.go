package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// What Admit returns, beside errors of Redis and of the database: then nobody knows, and nobody is admitted.
var (
	ErrUnknown   = errors.New("no such session or API key")
	ErrForbidden = errors.New("permission denied")
)

// Access says who may do what.
type Access struct {
	db          *sql.DB
	guard       *cacheguard.Guard
	permissions *cacheguard.Cache[int64, []string] // NoLocal: revoked when the call returns
	apiKeys     *cacheguard.Cache[string, int64]   // the same; users, by the hash of the key
	sessions    *cacheguard.Cache[string, int64]   // revoked within Local.MaxLag; users, by the hash of the token
	flags       *cacheguard.Cache[string, bool]    // the same
}

// Open returns the Access of an instance. Prefix is the same for all of them.
func Open(rdb *redis.Client, prefix string, db *sql.DB) (*Access, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: prefix, TTL: 10 * time.Minute, FailClosed: true, UpdateAnyway: true,
		Local: cacheguard.LocalConfig{MaxEntries: 100_000, TTL: time.Minute}, // MaxLag: 1 s
	})
	if err != nil {
		return nil, err
	}
	a := &Access{db: db, guard: guard}
	var errs [4]error
	a.permissions, errs[0] = cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, []string]{Name: "permissions", Load: a.loadPermissions, NoLocal: true})
	a.apiKeys, errs[1] = cacheguard.NewCache(guard, cacheguard.CacheConfig[string, int64]{Name: "key", Load: a.loadKey, NotFound: ErrUnknown, NoLocal: true})
	a.sessions, errs[2] = cacheguard.NewCache(guard, cacheguard.CacheConfig[string, int64]{Name: "session", Load: a.loadSession, NotFound: ErrUnknown})
	a.flags, errs[3] = cacheguard.NewCache(guard, cacheguard.CacheConfig[string, bool]{Name: "flag", Load: a.loadFlag})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close closes the Guard.
func (a *Access) Close() error { return a.guard.Close() }

// Admit returns nil if the session or API key stands, and its user has the permission.
func (a *Access) Admit(ctx context.Context, token, permission string) error {
	known := a.sessions
	if strings.HasPrefix(token, "key_") {
		known = a.apiKeys
	}
	user, err := known.Get(ctx, hash(token))
	if err != nil {
		return err
	}
	granted, err := a.permissions.Get(ctx, user)
	if err == nil && !slices.Contains(granted, permission) {
		return ErrForbidden
	}
	return err
}

// Flag reports whether a feature is on. What cannot be known is off.
func (a *Access) Flag(ctx context.Context, name string) bool {
	on, err := a.flags.Get(ctx, name)
	return on && err == nil
}

func (a *Access) loadSession(ctx context.Context, id string) (user int64, err error) {
	var ends int64
	err = a.db.QueryRowContext(ctx, `SELECT user_id, ends FROM sessions WHERE id = $1 AND ends > $2`, id, time.Now().Unix()).Scan(&user, &ends)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrUnknown
	}
	describe(ctx, user, time.Unix(ends, 0))
	return user, err
}

// describe says whose a session is, and until when it may be cached.
func describe(ctx context.Context, user int64, ends time.Time) {
	cacheguard.SetTTL(ctx, min(time.Until(ends), 10*time.Minute))
	cacheguard.SetTags(ctx, ownedBy(user))
}

func (a *Access) loadKey(ctx context.Context, id string) (user int64, err error) {
	err = a.db.QueryRowContext(ctx, `SELECT user_id FROM api_keys WHERE id = $1`, id).Scan(&user)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrUnknown
	}
	cacheguard.SetTags(ctx, ownedBy(user))
	return user, err
}

func (a *Access) loadPermissions(ctx context.Context, user int64) (granted []string, err error) {
	rows, err := a.db.QueryContext(ctx, `SELECT name FROM permissions WHERE user_id = $1`, user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		granted = append(granted, name)
	}
	return granted, rows.Err()
}

func (a *Access) loadFlag(ctx context.Context, name string) (on bool, err error) {
	err = a.db.QueryRowContext(ctx, `SELECT enabled FROM flags WHERE name = $1`, name).Scan(&on)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return on, err
}

// hash keeps tokens out of Redis, of its logs and of this process' metrics.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func ownedBy(user int64) string { return fmt.Sprint("user:", user) }
