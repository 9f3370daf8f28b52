package main

import (
	"context"
	_ "embed" // age.lua
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

const (
	instances   = 5
	connections = 10 // to the database
	queryTime   = 200 * time.Millisecond
	slowTime    = 10 * queryTime
	restTime    = time.Second // of a transaction, between the write and the commit
)

//go:embed age.lua
var ageSource string

var ageScript = redis.NewScript(ageSource)

// lab is all that the page shows and changes.
type lab struct {
	server   *backends.RedisServer
	admin    *redis.Client // reaches Redis when the instances cannot
	patience time.Duration // of the instances with Redis
	name     string
	db       *database
	ledger   *ledger
	tasks    sync.WaitGroup // callers, writers, and the ends of instances
	writing  atomic.Bool    // one writes at a time, so that the newest version is its
	rest     func(ctx context.Context) error

	instances [instances]atomic.Pointer[instance]

	mu       sync.Mutex // one action at a time
	settings settings
	callers  []context.CancelFunc
	redis    flow
	fleets   int // how many there have been
	expiries int64
}

func openLab(ctx context.Context, server *backends.RedisServer, patience time.Duration, s settings) (*lab, error) {
	l := &lab{
		server: server, admin: server.NewClient(), patience: patience, name: fmt.Sprintf("cacheguard-lab-%d", time.Now().UnixNano()),
		db: &database{pool: make(chan struct{}, connections)}, ledger: newLedger(), redis: up,
		rest: func(ctx context.Context) error {
			program.Pause(ctx, restTime)
			return ctx.Err()
		},
	}
	if err := l.change(ctx, s); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setCallers(0)
	l.killAll()
	l.tasks.Wait()
	return errors.Join(l.server.Delete(context.Background(), l.name), l.admin.Close())
}

// prefix returns the prefix of the keys in Redis. Each fleet has its own, as the modes do not understand each other's entries.
func (l *lab) prefix() string { return fmt.Sprintf("%s:%d", l.name, l.fleets) }

// change changes the settings, with new instances where that is necessary.
func (l *lab) change(ctx context.Context, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.lasting() != l.settings.lasting() {
		if err := l.renew(ctx, s); err != nil {
			return err
		}
	}
	was := l.settings.Late
	l.settings = s
	l.setLate(was)
	l.db.latency.Store(int64(queryTime))
	if s.Slow {
		l.db.latency.Store(int64(slowTime))
	}
	l.setCallers(s.Callers)
	return nil
}

// setLate has Redis answer later, or earlier, than it did.
func (l *lab) setLate(was int) {
	now := l.settings.Late
	if now == was {
		return
	}
	l.pays(l.settings.Mode)
	for i := range l.instances {
		l.instances[i].Load().wire.late.Store(int64(l.settings.late()))
	}
	l.ledger.note(fmt.Sprintf("Redis answers %d ms later.", now))
}

// renew replaces all instances. The cache of the new ones is warm, if Redis is up.
func (l *lab) renew(ctx context.Context, s settings) error {
	l.settings = settings{} // if this fails, the next change tries again
	l.setCallers(0)
	l.ledger.pays("") // what ends and begins with instances is no expiry
	l.killAll()
	l.tasks.Wait()
	err := l.server.Delete(ctx, l.prefix())
	l.fleets++
	for i := range l.instances {
		in, ierr := l.openInstance(i, s)
		if ierr != nil {
			return errors.Join(err, ierr)
		}
		l.instances[i].Store(in)
	}
	l.db.latency.Store(0)
	for range 2 { // the second returns when the product is stored
		if l.redis == up && err == nil {
			_, err = l.pick(0).shop.get(ctx)
		}
	}
	l.ledger.note(fmt.Sprintf("New instances, %s, with a warm cache.", names[s.Mode]))
	l.pays(s.Mode)
	return err
}

// expire ends the TTL of the hot key. With stale serving it makes the entry older; if there is none, a Guard whose TTL is a millisecond makes one.
func (l *lab) expire(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiries++
	if l.settings.Mode != modeGuard || !l.settings.Stale {
		return l.admin.Del(ctx, entry(l.prefix())).Err()
	}
	aged, err := ageScript.Run(ctx, l.admin, []string{entry(l.prefix())}, l.settings.ttl().Milliseconds()).Int()
	if err != nil || aged == 1 {
		return err
	}
	guard, err := cacheguard.New(l.admin, cacheguard.Config{Prefix: l.prefix(), TTL: time.Millisecond, StaleFor: staleFor})
	if err != nil {
		return err
	}
	_, err = cacheguard.Get(ctx, guard, hotKey, func(context.Context) (product, error) { return product{l.db.version.Load()}, nil })
	_ = guard.Close() // always nil; returns when the product is stored
	return err
}

// setRedis kills or freezes Redis for the instances, or has it back. One that was killed comes back empty.
func (l *lab) setRedis(ctx context.Context, f flow) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f == l.redis {
		return nil
	}
	if l.redis == down {
		err = l.server.Delete(ctx, l.prefix())
	}
	l.redis = f
	l.pays(l.settings.Mode)
	for i := range l.instances {
		if in := l.instances[i].Load(); in.alive() {
			in.wire.set(f)
		}
	}
	l.ledger.note(map[flow]string{up: "Redis is back.", frozen: "Redis hangs.", down: "Redis was killed."}[f])
	return err
}

// pays has the mode pay for expiries, but not for what happens without Redis, or beside a slow one.
func (l *lab) pays(m mode) {
	if l.redis != up || l.settings.Late > 0 {
		m = ""
	}
	l.ledger.pays(m)
}

// setInstance kills an instance, or starts a new one in its place.
func (l *lab) setInstance(i int, alive bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.instances[i].Load()
	if in.alive() == alive {
		return nil
	}
	if alive {
		next, err := l.openInstance(i, l.settings)
		if err == nil {
			l.instances[i].Store(next)
			l.ledger.note(in.name + " was started.")
		}
		return err
	}
	l.pays(l.settings.Mode)
	l.ledger.note(in.name + " was killed.")
	l.kill(in)
	return nil
}

func (l *lab) kill(in *instance) {
	in.kill()
	l.tasks.Go(func() { _ = in.close() }) // owner: l; stop: none, it is short; joined by renew and close
}

func (l *lab) killAll() {
	for i := range l.instances {
		if in := l.instances[i].Load(); in != nil && in.alive() {
			l.kill(in)
		}
	}
}

// write makes an instance write the product, unless one does.
func (l *lab) write() {
	l.withOne(func(in *instance) (string, error) { return "wrote version %d.", in.shop.write(in.ctx) })
}

// writeLate is write in a transaction that commits after it.
func (l *lab) writeLate() {
	l.mu.Lock()
	s := l.settings
	l.mu.Unlock()
	said := "committed version %d after its write had returned: what was loaded in between is older, and stays."
	if s.Mode == modeGuard && s.Intend {
		said = "committed version %d after its write had returned: until then an intent stood."
	}
	l.withOne(func(in *instance) (string, error) {
		return said, in.shop.writeLate(in.ctx, s.Intend, func() error { return l.rest(in.ctx) })
	})
}

// withOne lets an instance write, and say so.
func (l *lab) withOne(write func(*instance) (said string, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.pick(rand.N(instances))
	if in == nil || !l.writing.CompareAndSwap(false, true) {
		return
	}
	l.pays(l.settings.Mode)
	l.tasks.Go(func() { // owner: l; stop: the end of the instance; joined by renew and close
		defer l.writing.Store(false)
		said, err := write(in)
		if err == nil {
			version := l.db.version.Load()
			l.ledger.wrote(version)
			l.ledger.note(in.name + " " + fmt.Sprintf(said, version))
		} else if in.alive() {
			l.ledger.note(fmt.Sprintf("%s could not write: %v.", in.name, err))
		}
	})
}
