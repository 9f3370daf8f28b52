package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// locks looks at locks.
type locks struct {
	Show   showLocks  `cmd:"" help:"Show who holds locks, and who waits."`
	Revoke revokeLock `cmd:"" help:"Take a lock away from its holders, whose contexts end."`
}

type showLocks struct {
	asked

	Names []string `arg:"" help:"Names of locks, without the prefix."`
}

type revokeLock struct {
	sure
	asked

	Name string `arg:"" help:"Name of the lock, without the prefix."`
	Kind string `default:"mutex" enum:"mutex,rwlock,semaphore" help:"Its kind: mutex, rwlock or semaphore, of which all permits are taken away."`
}

// shownLock is a lock.
type shownLock struct {
	Name           string        `json:"name"`
	Kind           string        `json:"kind"`
	Instance       string        `json:"instance"` // of the holder, or the writer; empty: not known, or a semaphore
	Token          string        `json:"token"`    // the same
	Holders        int           `json:"holders"`
	Fence          int64         `json:"fence"`   // 0: a semaphore has none
	LeftMillis     int64         `json:"left_ms"` // of a semaphore, until the first permit is free unless it is renewed
	Waiting        int           `json:"waiting"` // of a rwlock, writers
	WaitingReaders int           `json:"waiting_readers"`
	Permits        []shownPermit `json:"held_by,omitempty"` // of a semaphore: who holds them
}

// shownPermit is a permit of a semaphore.
type shownPermit struct {
	Instance   string `json:"instance"` // empty: not known
	Token      string `json:"token"`
	LeftMillis int64  `json:"left_ms"`
}

type shownLocks struct {
	Prefix string      `json:"prefix"`
	Locks  []shownLock `json:"locks"`
	Notes  []string    `json:"notes,omitempty"` // what may be mistyped
}

func (r shownLocks) rows() [][]string {
	rows := [][]string{{"NAME", "KIND", "HOLDERS", "HOLDER", "LEFT", "FENCE", "WAITING", "TOKEN"}}
	for _, l := range r.Locks {
		row := []string{
			l.Name, l.Kind, strconv.Itoa(l.Holders), cmp.Or(l.Instance, "-"), left(l.LeftMillis),
			strconv.FormatInt(l.Fence, 10), strconv.Itoa(l.Waiting + l.WaitingReaders), l.Token,
		}
		if l.Kind == "semaphore" {
			row[5] = "-"
		}
		rows = append(rows, row)
		for _, p := range l.Permits {
			rows = append(rows, []string{"", "permit", "", cmp.Or(p.Instance, "-"), left(p.LeftMillis), "", "", p.Token})
		}
	}
	return append(rows, noted(r.Notes)...)
}

func left(millis int64) string { return (time.Duration(millis) * time.Millisecond).String() }

// lockers has a locker of each kind.
type lockers struct {
	mutex     *mutex.Locker
	rwlock    *rwlock.Locker
	semaphore *semaphore.Locker
}

func newLockers(e *env) (l lockers, err error) {
	if l.mutex, err = mutex.New(e.rdb, mutex.Config{Prefix: e.all.LockPrefix}); err != nil {
		return l, err
	}
	if l.rwlock, err = rwlock.New(e.rdb, rwlock.Config{Prefix: e.all.LockPrefix}); err != nil {
		return l, err
	}
	l.semaphore, err = semaphore.New(e.rdb, semaphore.Config{Prefix: e.all.LockPrefix, Permits: 1}) // takes none
	return l, err
}

func (l lockers) close() {
	_ = l.mutex.Close()     // always nil
	_ = l.rwlock.Close()    // always nil
	_ = l.semaphore.Close() // always nil
}

// Run is called by kong.
func (c *showLocks) Run(e *env) error {
	l, err := newLockers(e)
	if err != nil {
		return err
	}
	defer l.close()
	shown := shownLocks{Prefix: e.all.LockPrefix, Locks: []shownLock{}}
	for _, name := range c.Names {
		if err := shown.look(e, l, name); err != nil {
			return err
		}
	}
	for _, kind := range []string{"mutex", "rwlock", "semaphore"} {
		if note := e.lockFleet(c.Page, l, kind).note(e); note != "" && !slices.Contains(shown.Notes, note) {
			shown.Notes = append(shown.Notes, note)
		}
	}
	return e.out.print(shown)
}

// look adds what Redis knows of the name.
func (r *shownLocks) look(e *env, l lockers, name string) error {
	m, err := l.mutex.Inspect(e.ctx, name)
	rw, rwErr := l.rwlock.Inspect(e.ctx, name)
	sem, semErr := l.semaphore.Inspect(e.ctx, name)
	if err := errors.Join(err, rwErr, semErr); err != nil {
		return err
	}
	r.add(name, m, rw, sem)
	return nil
}

// add adds the lock of the name, of the kinds that Redis remembers; of an unknown one if it remembers none.
func (r *shownLocks) add(name string, m mutex.Info, rw rwlock.Info, sem semaphore.Info) {
	isRW := rw.Fence != 0 || rw.Readers > 0 || rw.Token != "" || rw.WaitingWriters+rw.WaitingReaders > 0
	isSem := len(sem.Holders)+sem.Waiters > 0
	if isMutex := m.Fence != 0 || m.Waiters > 0; isMutex || !isRW && !isSem {
		kind := "mutex"
		if !isMutex {
			kind = "unknown"
			r.Notes = append(r.Notes, fmt.Sprintf(
				"Redis knows no lock %q under the prefix %q: nobody has had it lately, it is a semaphore that is free, or the name or --lock-prefix is wrong", name, r.Prefix,
			))
		}
		r.Locks = append(r.Locks, shownLock{
			Name: name, Kind: kind, Instance: m.Instance, Token: m.Token, Holders: m.Holds, Fence: m.Fence, LeftMillis: m.Left.Milliseconds(), Waiting: m.Waiters,
		})
	}
	if isRW {
		l := shownLock{
			Name: name, Kind: "rwlock", Instance: rw.Instance, Token: rw.Token, Holders: rw.Readers, Fence: rw.Fence, LeftMillis: rw.Left.Milliseconds(),
			Waiting: rw.WaitingWriters, WaitingReaders: rw.WaitingReaders,
		}
		if rw.Token != "" {
			l.Holders++
		}
		r.Locks = append(r.Locks, l)
	}
	if isSem {
		r.Locks = append(r.Locks, semaphoreOf(name, sem))
	}
}

func semaphoreOf(name string, sem semaphore.Info) shownLock {
	l := shownLock{Name: name, Kind: "semaphore", Holders: len(sem.Holders), Waiting: sem.Waiters}
	for i, h := range sem.Holders {
		if i == 0 {
			l.LeftMillis = h.Left.Milliseconds()
		}
		l.Permits = append(l.Permits, shownPermit{keys.InstanceOf(h.Token), h.Token, h.Left.Milliseconds()})
	}
	return l
}

// revoked is what was taken away.
type revoked struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Holders int    `json:"holders"`

	Notes []string `json:"notes,omitempty"` // which instances use another Redis, or may
}

func (r revoked) rows() [][]string {
	return append([][]string{{"revoked", r.Kind, r.Name, strconv.Itoa(r.Holders) + " holders"}}, noted(r.Notes)...)
}

// Run is called by kong.
func (c *revokeLock) Run(e *env) error {
	l, err := newLockers(e)
	if err != nil {
		return err
	}
	defer l.close()
	var f fleet
	e.patiently("Redis, to see who uses it", func() { f = e.lockFleet(c.Page, l, c.Kind) })
	if err := f.refusal(e); err != nil {
		return err
	}
	const question = "Take the %s %q of %q away from its holders? What they still do, only a fence stops."
	if err := c.confirm(e, question, c.Kind, c.Name, e.all.LockPrefix); err != nil {
		return err
	}
	r := revoked{Name: c.Name, Kind: c.Kind, Notes: f.notes(e)}
	e.patiently("Redis, to take the lock away", func() { r.Holders, err = c.revoke(e, l) })
	switch {
	case err != nil:
		return err
	case r.Holders == 0:
		return fmt.Errorf("nobody holds the %s %q of %q in %s%s", c.Kind, c.Name, e.all.LockPrefix, e.where(), c.hint(e, l))
	}
	return e.out.print(r)
}

// revoke takes the lock away from so many holders.
func (c *revokeLock) revoke(e *env, l lockers) (holders int, err error) {
	switch c.Kind {
	case "rwlock":
		return l.rwlock.Revoke(e.ctx, c.Name)
	case "semaphore":
		return l.semaphore.Revoke(e.ctx, c.Name)
	}
	held, err := l.mutex.Revoke(e.ctx, c.Name)
	if held {
		holders = 1
	}
	return holders, err
}

// hint names the kinds of lock of that name that are held.
func (c *revokeLock) hint(e *env, l lockers) (text string) {
	var known shownLocks
	_ = known.look(e, l, c.Name) // then there is no hint
	for _, lock := range known.Locks {
		if lock.Holders > 0 {
			text += fmt.Sprintf("; a %s of this name is held: --kind %s", lock.Kind, lock.Kind)
		}
	}
	return text
}
