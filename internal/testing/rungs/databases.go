package rungs

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"

	mysqllocks "github.com/cacheguard/go/consensus/mysql"
	"github.com/cacheguard/go/consensus/postgres"
	"github.com/cacheguard/go/internal/testing/servers"
)

func startPostgres(tb testing.TB) (addr string, members []Member) {
	server := servers.StartPostgres(tb, func(address string) bool {
		pool, err := pgxpool.New(context.Background(), address)
		if err != nil {
			return false
		}
		defer pool.Close()
		return postgres.CreateTable(context.Background(), pool) == nil
	}, "fsync=on")
	return server.Address, []Member{server}
}

func onPostgres(addr, prefix string, ttl time.Duration) (Locks, error) {
	pool, err := pgxpool.New(context.Background(), addr)
	if err != nil {
		return nil, err
	}
	k, err := postgres.New(pool, postgres.Config{Prefix: prefix, TTL: ttl})
	return adapt(k, err, func() error {
		pool.Close()
		return nil
	})
}

func startMySQL(tb testing.TB) (addr string, members []Member) {
	server := servers.StartMariaDB(tb, func(socket string) bool {
		db, err := connectMySQL(socket)
		if err != nil {
			return false
		}
		defer db.Close()
		return mysqllocks.CreateTable(context.Background(), db) == nil
	})
	return server.Socket, []Member{server}
}

func connectMySQL(socket string) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Timeout = "root", "unix", socket, "mysql", timeout
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func onMySQL(addr, prefix string, ttl time.Duration) (Locks, error) {
	db, err := connectMySQL(addr)
	if err != nil {
		return nil, err
	}
	k, err := mysqllocks.New(db, mysqllocks.Config{Prefix: prefix, TTL: ttl})
	return adapt(k, err, db.Close)
}
