package wrap

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Project is what the manager manages.
type Project struct {
	ID   int
	Name string
	Tags map[string]string
}

// DAO is the ORM. Its transaction is in the context.
type DAO interface {
	ByID(ctx context.Context, id int) (*Project, error)
	ByName(ctx context.Context, name string) (*Project, error)
	Save(ctx context.Context, p *Project) error
	Transaction(ctx context.Context, f func(ctx context.Context) error) error
}

// ProjectsByHand are projects with a cache around the manager, as many services have it.
type ProjectsByHand struct {
	DAO

	rdb *redis.Client
}

// ByID fetches, or loads and saves: each caller by itself, and with a context that ends with its request.
func (m *ProjectsByHand) ByID(ctx context.Context, id int) (*Project, error) {
	return m.fetchOrSave(ctx, fmt.Sprint("project:id:", id), func() (*Project, error) { return m.DAO.ByID(ctx, id) })
}

// ByName has the same object under another key.
func (m *ProjectsByHand) ByName(ctx context.Context, name string) (*Project, error) {
	return m.fetchOrSave(ctx, "project:name:"+name, func() (*Project, error) { return m.DAO.ByName(ctx, name) })
}

func (m *ProjectsByHand) fetchOrSave(ctx context.Context, key string, load func() (*Project, error)) (*Project, error) {
	if raw, err := m.rdb.Get(ctx, key).Bytes(); err == nil {
		p := new(Project)
		return p, json.Unmarshal(raw, p)
	}
	p, err := load()
	if err != nil {
		return nil, err // absence is looked for again each time
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = m.rdb.Set(ctx, key, raw, time.Hour).Err()
	}
	return p, err
}

// Save saves, and deletes both keys. Within a transaction, that is before the commit: whoever reads in between caches
// the old project for an hour. And the key of the name that the project had before stays.
func (m *ProjectsByHand) Save(ctx context.Context, p *Project) error {
	if err := m.DAO.Save(ctx, p); err != nil {
		return err
	}
	return m.rdb.Del(ctx, fmt.Sprint("project:id:", p.ID), "project:name:"+p.Name).Err()
}
