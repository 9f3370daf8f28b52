package cacheguard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/script"
)

// versions invalidate many entries at once. A version is a random value in Redis that stands for a name. An entry has stamps: the
// versions that its names had before its loader began. It is valid while they are the current ones, so removing a version invalidates
// all entries that have it, wherever they are. So does the eviction of a version.
type versions struct {
	guard         *Guard
	invalidations invalidations // of tags
	ofRealms      invalidations // of realms
	all           *realm
	kinds         sync.Map      // *realm by kind
	lease         time.Duration // of the knowledge of realms; 0: it is read each time
	makings       makings
	used          atomic.Bool // somebody has set or invalidated tags here

	mu         sync.Mutex
	anyTag     string              // the version of all tags together, as this Guard has seen it last
	missing    map[string][]string // by key: tags of a load that could not be stored, because they were not known before
	remembered int                 // tags in missing
}

// maxMissing bounds the tags in versions.missing.
const maxMissing = 1 << 13

// The name of a stamp begins with a letter for what has the version.
const (
	rootStamp = 'r' // all keys
	kindStamp = 'k' // a kind
	tagStamp  = 't' // a tag
)

func kindName(kind string) string { return string(kindStamp) + kind }
func tagName(tag string) string   { return string(tagStamp) + tag }

// key is the key of the version of a tag, by its name.
func (v *versions) key(name string) string { return v.guard.keys.TagKey(name[1:]) }

func newVersions(g *Guard) *versions {
	v := &versions{guard: g, lease: realmLease}
	if g.cfg.clock.Manual() || g.cfg.Disabled {
		v.lease = 0 // so that InvalidateAll does not wait
	}
	v.all = v.newRealm("")
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
	v.ofRealms = invalidations{
		guard: g,
		part:  func(name string) int { p, _ := v.ofRealm(name); return g.health.Part(p.key) },
		call: func(name, notice string) *script.Call {
			p, _ := v.ofRealm(name)
			return g.keys.Revoke(p.key, notice)
		},
		message: func(name string) string {
			p, kind := v.ofRealm(name)
			return g.notices.NextOfMany(g.health.Part(p.key), noticeOfRealm(kind))
		},
		forgetLocal: v.forgetRealms,
		shown:       func(name string) string { _, kind := v.ofRealm(name); return kind },
	}
	return v
}

// revokeAnyTag runs before any tag is invalidated. So if a load reads the same version of all tags together before its loader
// begins and after it has read those of its tags, these were the same before the loader began.
func (v *versions) revokeAnyTag(ctx context.Context) error {
	_, err := v.guard.writeOne(ctx, v.guard.keys.RevokeAnyTag())
	v.guard.health.Failed(err)
	return err
}

// obtain returns the versions at the keys, in their order. It makes those that are not there. Calls at the same time share that.
func (v *versions) obtain(ctx context.Context, keys []string) ([]string, error) {
	all, errs, makings := make([]string, len(keys)), make([]error, len(keys)), make([]*making, len(keys))
	for i, key := range keys {
		makings[i] = v.making(key)
	}
	for i, m := range makings {
		select {
		case <-m.done:
			all[i], errs[i] = m.version, m.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, errors.Join(errs...)
}

// making makes the version at the key, if it is not there.
func (v *versions) making(key string) *making {
	v.makings.mu.Lock()
	defer v.makings.mu.Unlock()
	if m := v.makings.byKey[key]; m != nil {
		return m
	}
	m := &making{done: make(chan struct{})}
	if v.makings.byKey == nil {
		v.makings.byKey = make(map[string]*making)
	}
	v.makings.byKey[key] = m
	if !v.guard.life.Try(func() { v.make(key, m) }) { // stop: RedisTimeout
		delete(v.makings.byKey, key)
		m.err = ErrClosed
		close(m.done)
	}
	return m
}

func (v *versions) make(key string, m *making) {
	call := &link.Call{Script: v.guard.keys.Version(key), Rank: link.HoldsSlot}
	cmd, err := v.guard.link.Do(context.Background(), key, call)
	if err == nil {
		m.version, err = cmd.Text()
	}
	m.err = err
	v.makings.mu.Lock()
	defer v.makings.mu.Unlock()
	delete(v.makings.byKey, key)
	close(m.done)
}

// asked is versions that are being read.
type asked struct {
	keys  []string
	reads []*link.Read
}

// ask begins to read the versions at the keys, and does not wait. It is followed by one call of wait.
func (v *versions) ask(ctx context.Context, keys ...string) asked {
	a := asked{keys: keys, reads: make([]*link.Read, len(keys))}
	for i, key := range keys {
		a.reads[i], _ = v.guard.link.Ask(ctx, key) // refuses when it is closed only: nil
	}
	return a
}

// wait waits for the reads. redisErr is an error of Redis.
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

// knownAnyTag is what this Guard knows of the version of all tags together; empty: nothing.
func (v *versions) knownAnyTag() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.anyTag
}

func (v *versions) learnAnyTag(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.anyTag = version
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
