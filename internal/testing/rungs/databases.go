package rungs

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	mysqllocks "github.com/cacheguard/go/consensus/mysql"
	"github.com/cacheguard/go/consensus/postgres"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
	"github.com/cacheguard/go/mutex"
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

// timeout of requests: a machine that is busy is not a server that does not answer.
const timeout = 5 * time.Second

func onRedis(fair bool) func(addr, prefix string, ttl time.Duration) (Locks, error) {
	return func(addr, prefix string, ttl time.Duration) (Locks, error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		k, err := mutex.New(rdb, mutex.Config{Prefix: prefix, TTL: ttl, Fair: fair, RedisTimeout: timeout})
		return adapt(k, err, rdb.Close)
	}
}

// member is a Redis that is started again.
type member struct{ *redistest.Server }

func (m member) Start() { m.Restart() }

func startQuorum(tb testing.TB) (addr string, started []Member) {
	var addrs []string
	for range members {
		server := redistest.Start(tb)
		addrs, started = append(addrs, server.Addr()), append(started, member{server})
	}
	return strings.Join(addrs, ","), started
}

func onQuorum(addr, prefix string, ttl time.Duration) (Locks, error) {
	var clients []mutex.Redis
	var leave []func() error
	for a := range strings.SplitSeq(addr, ",") {
		rdb := redis.NewClient(&redis.Options{Addr: a})
		clients, leave = append(clients, rdb), append(leave, rdb.Close)
	}
	k, err := mutex.NewQuorum(clients, mutex.Config{Prefix: prefix, TTL: ttl, RedisTimeout: timeout})
	return adapt(k, err, func() (err error) {
		for _, f := range leave {
			err = errors.Join(err, f())
		}
		return err
	})
}
