package cacheguard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/script"
)

// versions are what many entries are invalidated by at once. A version is a random value in Redis that stands for a name. An entry has
// stamps: the versions that its names had before its loader began. It is valid while they are the same, so removing a version
// invalidates all entries that have it, wherever they are. One that was evicted does so too.
type versions struct {
	guard         *Guard
	invalidations invalidations // of names
	used          atomic.Bool   // somebody has set or invalidated tags here

	mu         sync.Mutex
	anyTag     string              // the version of all tags together, as this Guard has seen it last
	missing    map[string][]string // by key: tags of a load that could not be stored, as nobody had known them before
	remembered int                 // tags in missing
	learning   *learning           // of anyTag; nil: none is under way
}

// maxMissing bounds the tags in versions.missing.
const maxMissing = 1 << 13

// A name begins with what it is the name of.
const tagKind = 't'

func tagName(tag string) string { return string(tagKind) + tag }

// key is the key of a name's version.
func (v *versions) key(name string) string { return v.guard.keys.TagKey(name[1:]) }

func newVersions(g *Guard) *versions {
	v := &versions{guard: g}
	v.invalidations = invalidations{
		guard: g,
		part:  func(name string) int { return g.health.Part(v.key(name)) },
		call:  func(name, notice string) *script.Call { return g.keys.Revoke(v.key(name), notice) },
		message: func(name string) string {
			return g.notices.NextOfMany(g.health.Part(v.key(name)), name)
		},
		forgetLocal: func(names []string) { g.local.forgetMany(names) },
		shown:       func(name string) string { return name[1:] },
		first:       v.revokeAnyTag,
	}
	return v
}

// revokeAnyTag comes before any tag is invalidated: a load that reads the same version of all tags together before its loader
// began, and after it has read those of its tags, knows that these were the same before it began.
func (v *versions) revokeAnyTag(ctx context.Context) error {
	_, err := bounded(ctx, v.guard, func(ctx context.Context) (any, error) {
		return nil, v.guard.keys.RevokeAnyTag().Run(ctx, v.guard.rdb).Err()
	})
	v.guard.health.Failed(err)
	return err
}

// obtain returns the versions at the keys, in their order. It makes those that are not there. Only flights and tasks may call it.
func (v *versions) obtain(ctx context.Context, keys []string) ([]string, error) {
	all, errs := make([]string, len(keys)), make([]error, len(keys))
	one := func(i int) {
		call := &link.Call{Script: v.guard.keys.Version(keys[i]), Rank: link.HoldsSlot}
		cmd, err := v.guard.link.Do(ctx, keys[i], call)
		if err == nil {
			all[i], err = cmd.Text()
		}
		errs[i] = err
	}
	var others sync.WaitGroup
	for i := 1; i < len(keys); i++ {
		others.Go(func() { one(i) }) // owner: the caller; stop: ctx, RedisTimeout; joined here
	}
	one(0)
	others.Wait()
	return all, errors.Join(errs...)
}

// learning is the making of the version of all tags together, for all loads that wait for it.
type learning struct{ done chan struct{} }

// learnAnyTag has the version of all tags together made, if it is not there, and waits. Loads share that.
func (v *versions) learnAnyTag(ctx context.Context) string {
	v.mu.Lock()
	l := v.learning
	if l == nil {
		l = &learning{done: make(chan struct{})}
		if v.guard.inTask(func() { v.learnFor(l) }) { // stop: RedisTimeout
			v.learning = l
		} else {
			close(l.done)
		}
	}
	v.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	return v.known()
}

func (v *versions) learnFor(l *learning) {
	made, err := v.obtain(context.Background(), []string{v.guard.keys.AnyTagKey()})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learning, v.anyTag = nil, ""
	if err == nil {
		v.anyTag = made[0]
	}
	close(l.done)
}

// asked is versions that are being read.
type asked struct {
	keys  []string
	reads []*link.Read
}

// ask has the versions at the keys read, and does not wait. It is followed by one call of wait.
func (v *versions) ask(ctx context.Context, keys ...string) asked {
	a := asked{keys: keys, reads: make([]*link.Read, len(keys))}
	for i, key := range keys {
		a.reads[i], _ = v.guard.link.Ask(ctx, key) // refuses when it is closed only: nil
	}
	return a
}

// wait waits for the reads. Redis' error is what Redis had to say.
func (a *asked) wait(ctx context.Context) (redisErr, err error) {
	for _, read := range a.reads { // each, also after an error
		switch {
		case read == nil:
			err = link.ErrClosed
		default:
			if e := read.Wait(ctx); e != nil {
				err = e
			} else if read.Err != nil {
				redisErr = read.Err
			}
		}
	}
	return redisErr, err
}

// known is what this Guard knows of the version of all tags together; empty: nothing.
func (v *versions) known() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.anyTag
}

func (v *versions) learn(anyTag string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.anyTag = anyTag
}

// miss remembers tags that a load of the key had, for the next one.
func (v *versions) miss(key string, tags []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.missing == nil {
		v.missing = make(map[string][]string)
	}
	v.forgetMissingLocked(key)
	for other := range v.missing {
		if v.remembered+len(tags) <= maxMissing {
			break
		}
		v.forgetMissingLocked(other)
	}
	v.missing[key] = tags
	v.remembered += len(tags)
}

func (v *versions) forgetMissingLocked(key string) {
	v.remembered -= len(v.missing[key])
	delete(v.missing, key)
}

// missed returns what miss remembers of the key.
func (v *versions) missed(key string) []string {
	if !v.used.Load() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.missing[key]
}
