package wrap

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Projects is the manager with a cache around it. Callers do not see the difference.
type Projects struct {
	dao    DAO
	guard  *cacheguard.Guard
	byID   *cacheguard.Cache[int, *Project]
	byName *cacheguard.Cache[string, *Project]
}

// NewProjects wraps the manager.
func NewProjects(guard *cacheguard.Guard, dao DAO) (*Projects, error) {
	m := &Projects{dao: dao, guard: guard}
	var err error
	m.byID, err = cacheguard.NewCache(guard, cacheguard.CacheConfig[int, *Project]{
		Name: "project", Load: dao.ByID, TTL: time.Hour, NotFound: sql.ErrNoRows, Clone: clone,
	})
	if err != nil {
		return nil, err
	}
	m.byName, err = cacheguard.NewCache(guard, cacheguard.CacheConfig[string, *Project]{
		Name: "project-name", Load: dao.ByName, TTL: time.Hour, NotFound: sql.ErrNoRows, Clone: clone,
		Tags: func(_ string, p *Project) []string { return []string{tagOf(p.ID)} }, // under whatever name it was
	})
	return m, err
}

// tagOf finds an object under each of its keys.
func tagOf(id int) string { return fmt.Sprint("project:", id) }

// clone makes each caller's own project: managers hand out pointers, and callers change what they get.
func clone(p *Project) *Project {
	own := *p
	own.Tags = maps.Clone(p.Tags)
	return &own
}

// ByID returns a project.
func (m *Projects) ByID(ctx context.Context, id int) (*Project, error) { return m.byID.Get(ctx, id) }

// ByName returns the project that has the name.
func (m *Projects) ByName(ctx context.Context, name string) (*Project, error) {
	return m.byName.Get(ctx, name)
}

// Save saves, in the caller's transaction or one of its own.
func (m *Projects) Save(ctx context.Context, p *Project) error {
	return m.Transaction(ctx, func(ctx context.Context) error {
		changed := cacheguard.Changes{Keys: []string{m.byID.Key(p.ID), m.byName.Key(p.Name)}, Tags: []string{tagOf(p.ID)}}
		if err := intentOf(ctx).Also(ctx, changed); err != nil {
			return err // nothing is committed
		}
		return m.dao.Save(ctx, p)
	})
}

type intentKey struct{}

func intentOf(ctx context.Context) *cacheguard.Intent {
	in, _ := ctx.Value(intentKey{}).(*cacheguard.Intent)
	return in
}

// Transaction is the one place where transactions end, so also the one that knows when what they named is invalid. A
// transaction within another one is a part of it.
func (m *Projects) Transaction(ctx context.Context, f func(ctx context.Context) error) error {
	if intentOf(ctx) != nil {
		return f(ctx)
	}
	in, err := m.guard.Intend(ctx, cacheguard.Changes{})
	if err != nil {
		return err
	}
	defer in.Done(ctx) // after a rollback or a panic
	if err := m.dao.Transaction(context.WithValue(in.Context(ctx), intentKey{}, in), f); err != nil {
		return err
	}
	return in.Done(ctx)
}
