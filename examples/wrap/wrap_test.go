package wrap

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// orm is a database in this process. What a transaction saves, others see when it has committed.
type orm struct {
	mu       sync.Mutex
	projects map[int]Project
	commits  func() // is called before a commit
}

type txKey struct{}

func (o *orm) ByID(_ context.Context, id int) (*Project, error) {
	return o.find(func(p Project) bool { return p.ID == id })
}

func (o *orm) ByName(_ context.Context, name string) (*Project, error) {
	return o.find(func(p Project) bool { return p.Name == name })
}

func (o *orm) find(is func(Project) bool) (*Project, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.projects {
		if is(p) {
			p.Tags = maps.Clone(p.Tags)
			return &p, nil
		}
	}
	return nil, sql.ErrNoRows
}

func (o *orm) Save(ctx context.Context, p *Project) error {
	ctx.Value(txKey{}).(map[int]Project)[p.ID] = *p
	return nil
}

func (o *orm) Transaction(ctx context.Context, f func(context.Context) error) error {
	saved := make(map[int]Project)
	if err := f(context.WithValue(ctx, txKey{}, saved)); err != nil {
		return err
	}
	o.commits()
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.projects, saved)
	return nil
}

// manager is what both have.
type manager interface {
	ByID(ctx context.Context, id int) (*Project, error)
	ByName(ctx context.Context, name string) (*Project, error)
	Save(ctx context.Context, p *Project) error
	Transaction(ctx context.Context, f func(ctx context.Context) error) error
}

// rename reads a project by both keys, renames it, and reads it again before and after the commit. It returns what is
// found at the end: the name by the id, and whether there is one of the old name.
func rename(t *testing.T, db *orm, m manager) (name string, old bool) {
	t.Helper()
	ctx := redistest.Patiently(t)
	db.projects = map[int]Project{1: {ID: 1, Name: "red", Tags: map[string]string{"team": "a"}}}
	look := func() {
		p, err := m.ByID(ctx, 1)
		byName, err2 := m.ByName(ctx, "red")
		if err := errors.Join(err, err2); err != nil || p.Name != "red" || byName.ID != 1 {
			t.Fatal(p, byName, err)
		}
		p.Tags["team"] = "mine" // as callers do
	}
	look()
	db.commits = look // another request, while the transaction is under way
	err := m.Transaction(ctx, func(ctx context.Context) error {
		return m.Save(ctx, &Project{ID: 1, Name: "blue", Tags: map[string]string{"team": "b"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.ByID(ctx, 1)
	if err != nil || p.Tags["team"] == "mine" {
		t.Fatal(p, err)
	}
	_, err = m.ByName(ctx, "red")
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return p.Name, err == nil
}

func TestAManagerByHandKeepsWhatWasReadBeforeACommitAndTheOldName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	db := new(orm)
	if name, old := rename(t, db, &ProjectsByHand{db, server.Client(t)}); name != "red" || !old {
		t.Error("by hand it is right: then the example says too much of it")
	}
}

func TestAManagerOnCacheguardHasTheNewProjectUnderBothKeys(t *testing.T) {
	t.Parallel()
	db := new(orm)
	m, err := NewProjects(newGuard(t), db)
	if err != nil {
		t.Fatal(err)
	}
	if name, old := rename(t, db, m); name != "blue" || old {
		t.Errorf("the project is %q, and there is one of the old name: %v", name, old)
	}
}

func newGuard(t *testing.T) *cacheguard.Guard {
	t.Helper()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{
		Prefix: rand.Text(), RedisTimeout: redistest.Patience, HedgeAfter: -1, LeaseTTL: redistest.Patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	return guard
}

func TestAnotherProcessHearsOfUsersThatChange(t *testing.T) {
	t.Parallel()
	var name atomic.Value
	name.Store("Ann")
	load := func(_ context.Context, ids []string) (map[string]string, error) {
		all := make(map[string]string)
		for _, id := range ids {
			if id != "nobody" {
				all[id] = name.Load().(string)
			}
		}
		return all, nil
	}
	ctx, ids := redistest.Patiently(t), []string{"1", "2", "nobody"}
	is := func(get func(context.Context, []string) (map[string]string, error), want string) bool {
		names, err := get(ctx, ids)
		if err != nil {
			t.Fatal(err)
		}
		return maps.Equal(names, map[string]string{"1": want, "2": want})
	}

	server, prefix := redistest.Start(t), rand.Text()
	var byHand [2]*UsersByHand
	var wrapped [2]*Users
	for i := range wrapped {
		byHand[i] = &UsersByHand{rdb: server.Client(t), load: load, slot: func(key string) int { return int(key[len(key)-1]) }}
		var err error
		if wrapped[i], err = NewUsers(shared.Client(t), load, prefix); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = wrapped[i].Close() }) // always nil
		if !is(byHand[i].GetMany, "Ann") || !is(wrapped[i].GetMany, "Ann") {
			t.Fatal("not Ann")
		}
	}
	name.Store("Eve")
	if err := errors.Join(byHand[0].Delete(ctx, ids...), wrapped[0].Delete(ctx, ids...)); err != nil {
		t.Fatal(err)
	}
	if !is(wrapped[0].GetMany, "Eve") || !is(byHand[0].GetMany, "Eve") {
		t.Error("the process that changed it has the old name")
	}
	redistest.Await(t, "the other process has the new name", func() bool { return is(wrapped[1].GetMany, "Eve") })
	if !is(byHand[1].GetMany, "Ann") { // it was not connected, and hears no more of it
		t.Error("by hand it is right: then the example says too much of it")
	}
}

// storage counts.
type storage struct {
	mu        sync.Mutex
	there     map[string]bool
	downloads int
	began     func()
}

func (s *storage) Exists(_ context.Context, module string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.there[module], nil
}

func (s *storage) Download(ctx context.Context, module string) error {
	s.began()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downloads++
	s.there[module] = ctx.Err() == nil
	return ctx.Err()
}

func TestEachModuleIsDownloadedOnceAndAClientThatLeavesLeavesNoLock(t *testing.T) {
	t.Parallel()
	locks, err := mutex.New(shared.Client(t), mutex.Config{Prefix: rand.Text(), RedisTimeout: redistest.Patience, TTL: redistest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	for name, wrap := range map[string]func(Storage) func(context.Context, string) error{
		"by hand":       func(s Storage) func(context.Context, string) error { return (&MirrorByHand{s, shared.Client(t)}).Stash },
		"on cacheguard": func(s Storage) func(context.Context, string) error { return (&Mirror{s, locks}).Stash },
	} {
		s := &storage{there: make(map[string]bool), began: func() {}}
		stash, ctx := wrap(s), redistest.Patiently(t)
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if err := stash(ctx, "popular"); err != nil {
					t.Error(name, err)
				}
			})
		}
		callers.Wait()
		if s.downloads != 1 {
			t.Errorf("%s: %d downloads", name, s.downloads)
		}

		leaving, leave := context.WithCancel(ctx)
		s.began = leave
		_ = stash(leaving, "rare") // its client has left
		s.began = func() {}
		if name == "by hand" { // and nobody has unlocked
			if n := shared.Client(t).Exists(ctx, "lock:rare").Val(); n != 1 {
				t.Error("by hand it is right: then the example says too much of it")
			}
			continue
		}
		if err := stash(ctx, "rare"); err != nil || !s.there["rare"] {
			t.Error(name, err)
		}
	}
}
