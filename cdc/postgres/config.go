package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/run/config"
)

// Config describes a Feed. All fields up to Guards are required; of Conn and NewConn, one is.
type Config struct {
	// Conn is how to connect to the database: a URL or a list of settings, as for psql, with the usual settings of TLS. The PG environment
	// variables hold for what it does not say. It must lead to the primary. The role needs the attribute REPLICATION.
	Conn string

	// NewConn returns what Conn would be, before each connection: for passwords that rotate, and tokens that expire. It is called by several goroutines, and its ctx ends
	// with the time that a connection may take. Connections that are open stay so.
	NewConn func(ctx context.Context) (string, error)

	// Publication is the name of the publication, which an administrator creates: CREATE PUBLICATION shop FOR TABLE products, prices.
	Publication string

	// Slot is the name of the replication slot, which the Feed creates. All instances that share it share the reading: one does, the others
	// stand by. Lower-case letters, digits and underscores; at most 59.
	Slot string

	// Tables are what changes of tables invalidate.
	Tables []cdc.Table

	// Guards are whose entries are invalidated: usually one.
	Guards []*cacheguard.Guard

	// Order has Caches of which values are made of each other, each after those that its own are made of. See cdc.Kind. Default: none; what is
	// read together is invalidated together.
	Order []cdc.Kind

	// MaxRetained is how many bytes of its log the database may keep for the slot. At half of that, the Feed warns. At the whole, it drops the slot,
	// creates another, and invalidates the kinds of all Tables whole. It can do so only while an instance runs. What a transaction that was left open holds back
	// counts, too (Stats.HeldBy): no slot can be created before that ends, and the kinds are invalidated whole every ten seconds or so meanwhile. At least 32 MiB.
	// Default: 1 GiB. -1: no limit.
	MaxRetained int64

	// Temporary keeps no slot while no instance reads, so that nothing of the log is kept either. Each time that an instance begins to read, it
	// invalidates the kinds of all Tables whole. Default: false.
	Temporary bool

	// Logger gets the begin and the end of troubles, who reads, and why kinds are invalidated whole. Default: none.
	Logger *slog.Logger
}

const (
	minRetained     = 32 << 20
	defaultRetained = 1 << 30
)

var (
	slotName  = regexp.MustCompile(`^[a-z0-9_]{1,59}$`)
	plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
)

// Feed reads the log of a database. It is safe for concurrent use.
type Feed struct {
	cfg    Config
	engine *engine.Engine
	conn   func(ctx context.Context) (*pgx.ConnConfig, error)
	notes  engine.Notes
	why    string // the next slot is new
	warned bool   // that the slot holds back much; sessions run one after the other
}

// New returns a Feed. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(cfg Config) (*Feed, error) {
	var p config.Problems
	conn, err := pgx.ParseConfig(cfg.Conn)
	if err != nil {
		p.Add("Conn", "%w", err)
	}
	engine.CheckConn(&p, cfg.Conn, cfg.NewConn)
	if cfg.Publication == "" {
		p.Add("Publication", "is empty")
	}
	if !slotName.MatchString(cfg.Slot) {
		p.Add("Slot", "%q is not a name of 1 to 59 lower-case letters, digits and underscores", cfg.Slot)
	}
	if cfg.MaxRetained < minRetained && cfg.MaxRetained != 0 && cfg.MaxRetained != config.Off {
		p.Add("MaxRetained", "%d is less than 32 MiB (use -1 for no limit)", cfg.MaxRetained)
	}
	tables := engine.Check(&p, cfg.Tables, cfg.Guards, cfg.Order...)
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	config.SetDefault(&cfg.MaxRetained, defaultRetained)
	cfg.Logger = engine.Logger(cfg.Logger, cfg.Guards).With("slot", cfg.Slot)
	connect := func(ctx context.Context) (*pgx.ConnConfig, error) {
		if cfg.NewConn == nil {
			return conn.Copy(), nil
		}
		text, err := cfg.NewConn(ctx)
		if err != nil {
			return nil, err
		}
		return pgx.ParseConfig(text)
	}
	notes := engine.Notes{Guards: cfg.Guards, Name: cfg.Slot}
	return &Feed{cfg: cfg, conn: connect, notes: notes, engine: &engine.Engine{Tables: tables, Guards: cfg.Guards, Order: cfg.Order, Log: cfg.Logger}}, nil
}

// Stats are the figures of now.
func (f *Feed) Stats() cdc.Stats {
	if f == nil {
		return cdc.Stats{Err: errNilFeed}
	}
	return f.engine.Stats()
}

var errNilFeed = errors.New("cdc/postgres: feed is nil (did New return an error?)")
