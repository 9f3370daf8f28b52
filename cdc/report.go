package cdc

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// ReportConfig describes a Report.
type ReportConfig struct {
	// OneIn is how many changed rows there are for each that is looked at. Default: 1000.
	OneIn int

	// Logger gets each value that was old. Default: none.
	Logger *slog.Logger
}

// Report looks at what a cache serves after rows have changed, for one of some changed rows: at once and until it is what the database has, and 1, 10 and 60
// seconds after the commit. Each look reads the Cache as a caller would, and the database. Map the tables with Reported, and call Run. It is safe
// for concurrent use.
type Report struct {
	cfg     ReportConfig
	samples chan sample

	mu    sync.Mutex
	found Consistency
	took  []time.Duration // until consistent, the last ones; a ring
	next  int
	rows  int // since the last one that was looked at
}

// Consistency is what a Report has found.
type Consistency struct {
	Rows    uint64 // that were looked at
	Skipped uint64 // that were not, as too many are being looked at, or Run does not run
	Failed  uint64 // reads that the cache or the database did not answer

	// After are the looks 1, 10 and 60 seconds after the commit.
	After []Looks

	// P50, P99 and Longest are how long it took from the commit until the cache served what the database had; of the last 4,096 rows, and Longest of all.
	// The times of commits are the database's.
	P50, P99, Longest time.Duration

	// Old are the last values that were old a second after the commit or later, at most 100.
	Old []OldValue
}

// Looks are looks at rows, some time after their commit.
type Looks struct {
	After      time.Duration
	Reads, Old uint64
}

// PerMillion is how many of a million reads were of old values.
func (l Looks) PerMillion() float64 {
	if l.Reads == 0 {
		return 0
	}
	return float64(l.Old) / float64(l.Reads) * 1e6
}

// OldValue is a value that the cache served although the database had another one.
type OldValue struct {
	Table, Key string
	Committed  time.Time
	After      time.Duration // the commit
	Why        string        // by what Guard.Inspect reports: when the entry was stored, and when its load began
	Epochs     []string      // of its tags, as Inspection.TagVersions
}

const (
	mostSamples = 2000 // that are followed at the same time
	mostOld     = 100
	mostTook    = 4096
)

// moments are after the commit.
var moments = [...]time.Duration{time.Second, 10 * time.Second, time.Minute}

// NewReport makes a Report. The error names every field of cfg that is out of range.
func NewReport(cfg ReportConfig) (*Report, error) {
	if cfg.OneIn < 0 {
		return nil, fmt.Errorf("cdc: Config.OneIn: %d is negative", cfg.OneIn)
	}
	if cfg.OneIn == 0 {
		cfg.OneIn = 1000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Report{cfg: cfg, samples: make(chan sample, 100)}
	for _, after := range moments {
		r.found.After = append(r.found.After, Looks{After: after})
	}
	return r, nil
}

// Reported is a Table as Rows makes it, with a Report on it. source reads a thing from the primary of the database, as CacheConfig.Load does; if there is no such
// thing, its error matches cacheguard.ErrNotFound, sql.ErrNoRows, or what Get of the Cache returns. Things are compared by reflect.DeepEqual.
func Reported[K comparable, V any](r *Report, table string, cache *cacheguard.Cache[K, V], key func(Row) (K, error), source func(context.Context, K) (V, error)) Table {
	t := Rows(table, cache, key)
	if t.Changed == nil || r == nil || source == nil {
		return Table{Name: table} // the feed's New refuses it
	}
	changed := t.Changed
	t.Changed = func(c Change) cacheguard.Changes {
		changes := changed(c)
		row := c.New
		if row.IsZero() {
			row = c.Old
		}
		if c.Committed.IsZero() {
			return changes // SelfCheck tries it
		}
		if id, err := key(row); err == nil && r.due() {
			r.take(sample{
				table: table, key: cache.Key(id), committed: c.Committed, inspect: cache.Guard().Inspect,
				served: func(ctx context.Context) answer { return answerOf(cache.Get(ctx, id)) },
				truth:  func(ctx context.Context) answer { return answerOf(source(ctx, id)) },
			})
		}
		return changes
	}
	return t
}

// due reports whether it is the turn of a row.
func (r *Report) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = (r.rows + 1) % r.cfg.OneIn
	return r.rows == 0
}

// take hands a sample to Run.
func (r *Report) take(s sample) {
	select {
	case r.samples <- s:
	default:
		r.count(func(c *Consistency) { c.Skipped++ })
	}
}

func (r *Report) count(change func(*Consistency)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.found)
}
