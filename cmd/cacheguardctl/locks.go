package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

// locks looks at locks.
type locks struct {
	Show   showLocks  `cmd:"" help:"Show who holds locks, and who waits."`
	Revoke revokeLock `cmd:"" help:"Take a lock away from its holders, whose contexts end."`
}

type showLocks struct {
	Names []string `arg:"" help:"Names of locks, without the prefix."`
}

type revokeLock struct {
	Name string `arg:"" help:"Name of the lock, without the prefix."`
	Kind string `default:"mutex" enum:"mutex,rwlock" help:"Its kind: mutex or rwlock."`
}

// shownLock is a lock.
type shownLock struct {
	Name           string `json:"name"`
	Kind           string `json:"kind"`
	Instance       string `json:"instance"` // of the holder, or the writer; empty: not known
	Token          string `json:"token"`    // likewise
	Holders        int    `json:"holders"`
	Fence          int64  `json:"fence"`
	LeftMillis     int64  `json:"left_ms"`
	Waiting        int    `json:"waiting"` // of a rwlock, writers
	WaitingReaders int    `json:"waiting_readers"`
}

type shownLocks struct {
	Prefix string      `json:"prefix"`
	Locks  []shownLock `json:"locks"`
}

func (r shownLocks) rows() [][]string {
	rows := [][]string{{"NAME", "KIND", "HOLDERS", "HOLDER", "LEFT", "FENCE", "WAITING", "TOKEN"}}
	for _, l := range r.Locks {
		rows = append(rows, []string{
			l.Name, l.Kind, strconv.Itoa(l.Holders), cmp.Or(l.Instance, "-"), (time.Duration(l.LeftMillis) * time.Millisecond).String(),
			strconv.FormatInt(l.Fence, 10), strconv.Itoa(l.Waiting + l.WaitingReaders), l.Token,
		})
	}
	return rows
}

// lockers are those of both kinds.
type lockers struct {
	mutex  *mutex.Locker
	rwlock *rwlock.Locker
}

func newLockers(e *env) (l lockers, err error) {
	if l.mutex, err = mutex.New(e.rdb, mutex.Config{Prefix: e.all.LockPrefix}); err != nil {
		return l, err
	}
	l.rwlock, err = rwlock.New(e.rdb, rwlock.Config{Prefix: e.all.LockPrefix})
	return l, err
}

func (l lockers) close() {
	_ = l.mutex.Close()  // always nil
	_ = l.rwlock.Close() // always nil
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
		m, err := l.mutex.Inspect(e.ctx, name)
		rw, rwErr := l.rwlock.Inspect(e.ctx, name)
		if err := errors.Join(err, rwErr); err != nil {
			return err
		}
		shown.add(name, m, rw)
	}
	return e.out.print(shown)
}

// add adds the lock of the name, of the kinds that Redis remembers; a mutex if it remembers none.
func (r *shownLocks) add(name string, m mutex.Info, rw rwlock.Info) {
	isRW := rw.Fence != 0 || rw.Readers > 0 || rw.Token != "" || rw.WaitingWriters+rw.WaitingReaders > 0
	if m.Fence != 0 || m.Waiters > 0 || !isRW {
		r.Locks = append(r.Locks, shownLock{
			Name: name, Kind: "mutex", Instance: m.Instance, Token: m.Token, Holders: m.Holds, Fence: m.Fence, LeftMillis: m.Left.Milliseconds(), Waiting: m.Waiters,
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
}

// revoked is what was taken away.
type revoked struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Holders int    `json:"holders"`
}

func (r revoked) rows() [][]string {
	return [][]string{{"revoked", r.Kind, r.Name, strconv.Itoa(r.Holders) + " holders"}}
}

// Run is called by kong.
func (c *revokeLock) Run(e *env) error {
	l, err := newLockers(e)
	if err != nil {
		return err
	}
	defer l.close()
	r := revoked{Name: c.Name, Kind: c.Kind}
	if c.Kind == "rwlock" {
		r.Holders, err = l.rwlock.Revoke(e.ctx, c.Name)
	} else {
		var held bool
		if held, err = l.mutex.Revoke(e.ctx, c.Name); held {
			r.Holders = 1
		}
	}
	switch {
	case err != nil:
		return err
	case r.Holders == 0:
		return fmt.Errorf("nobody holds the %s %q", c.Kind, c.Name)
	}
	return e.out.print(r)
}
