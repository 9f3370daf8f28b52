package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	driver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/run/config"
)

// Config describes a Feed. All fields up to Guards are required; of Conn and NewConn, one is.
type Config struct {
	// Conn is how to connect to the database, as for github.com/go-sql-driver/mysql: user:password@tcp(host:3306)/shop?tls=true. It must lead to the
	// primary. The user needs REPLICATION SLAVE and BINLOG MONITOR.
	Conn string

	// NewConn returns what Conn would be, before each connection: for passwords that rotate, and tokens that expire. It is called by several goroutines, and its ctx ends
	// with the time that a connection may take. Connections that are open stay so.
	NewConn func(ctx context.Context) (string, error)

	// Name names the feed, its lock, and its position in Redis. All instances with the same Name share the reading: one does, the
	// others stand by. Without braces.
	Name string

	// Redis keeps the position and the lock. Use the Redis of the cache. The Feed does not close it.
	Redis redis.UniversalClient

	// Tables are what changes of tables invalidate. They are named with their database: shop.products.
	Tables []cdc.Table

	// Guards are whose entries are invalidated: usually one.
	Guards []*cacheguard.Guard

	// Order has Caches of which values are made of each other, each after those that its own are made of. See cdc.Kind. Default: none; what is
	// read together is invalidated together.
	Order []cdc.Kind

	// ServerID identifies the feed among the replicas of the server. Each of them needs another one. Default: a random one.
	ServerID uint32

	// Logger gets the begin and the end of troubles, who reads, and why kinds are invalidated whole. Default: none.
	Logger *slog.Logger
}

// Feed reads the log of a database. It is safe for concurrent use.
type Feed struct {
	cfg    Config
	engine *engine.Engine
	conn   func(ctx context.Context) (*driver.Config, error)
	key    string // of the position
	notes  engine.Notes
	decode func(*replication.RowsEvent, []byte) error

	stuck    place // where the log could not be read
	attempts int   // to read it there
}

// New returns a Feed. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(cfg Config) (*Feed, error) {
	var p config.Problems
	conn, err := parse(cfg.Conn)
	if err != nil && cfg.Conn != "" {
		p.Add("Conn", "%w", err)
	}
	engine.CheckConn(&p, cfg.Conn, cfg.NewConn)
	if cfg.Name == "" || strings.ContainsAny(cfg.Name, "{}") {
		p.Add("Name", "%q is empty or contains a brace", cfg.Name)
	}
	if err := config.CheckClient(cfg.Redis); err != nil {
		p.Add("Redis", "is nil")
	}
	tables := engine.Check(&p, cfg.Tables, cfg.Guards, cfg.Order...)
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("cdc/mysql: %w", err)
	}
	if cfg.ServerID == 0 {
		cfg.ServerID = 1<<30 + rand.Uint32N(1<<30) // people give small ones
	}
	cfg.Logger = engine.Logger(cfg.Logger, cfg.Guards).With("feed", cfg.Name)
	f := &Feed{
		cfg: cfg, conn: connect(conn, cfg.NewConn), key: "cacheguard:cdc:{" + cfg.Name + "}", notes: engine.Notes{Guards: cfg.Guards, Name: cfg.Name},
		engine: &engine.Engine{Tables: tables, Guards: cfg.Guards, Order: cfg.Order, Log: cfg.Logger},
	}
	f.decode = f.decodeRows
	return f, nil
}

// Stats are the figures of now. BehindBytes and Retained are 0.
func (f *Feed) Stats() cdc.Stats {
	if f == nil {
		return cdc.Stats{Err: errNilFeed}
	}
	return f.engine.Stats()
}

// snapshot returns a place in the log. A new read of the database sees everything before it.
func (f *Feed) snapshot(ctx context.Context, db *sql.DB) (p place, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return p, fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = conn.Close() }() // it goes back to the others
	if _, err := conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
		return p, fmt.Errorf("cdc/mysql: %w", err)
	}
	err = conn.QueryRowContext(ctx, `SELECT @@server_uid,
		(SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'binlog_snapshot_file'),
		(SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'binlog_snapshot_position')`).Scan(&p.server, &p.file, &p.pos)
	if _, end := conn.ExecContext(ctx, "COMMIT"); err == nil {
		err = end
	}
	if err != nil {
		return p, fmt.Errorf("cdc/mysql: ask where the log is: %w", err)
	}
	if p.file == "" {
		return p, errors.New("cdc/mysql: the server has no binary log (mend with: log_bin in its configuration, and a restart)")
	}
	return p, nil
}

// errShorter says that a position is beyond the end of the log: of another log, as after RESET MASTER, or when a backup was put back.
var errShorter = errors.New("cdc/mysql: " + shorter)

// within returns errShorter if a place that was stored before is not in the log.
func (f *Feed) within(ctx context.Context, db *sql.DB, p place) error {
	now, err := f.snapshot(ctx, db)
	if err == nil && now.server == p.server && now.number() < p.number() {
		return errShorter
	}
	return err
}

const timeout = 10 * time.Second // of a statement

var errNilFeed = errors.New("cdc/mysql: feed is nil (did New return an error?)")
