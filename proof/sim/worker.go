package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// worker is a caller on an instance that does one thing after the other.
type worker struct {
	world  *world
	in     *instance
	random *rand.Rand
}

func (w *worker) work(ctx context.Context) {
	for range w.world.plan.operations {
		time.Sleep(rand64(w.random, w.world.plan.pause))
		if w.dead() {
			return
		}
		began := time.Now()
		w.operate(ctx)
		if took := time.Since(began); took > longestCall {
			w.world.truth.complain("a call on %s took %v", w.in.name, took)
		}
	}
}

// look reads again and again, so that a tier has something, and is asked for it.
func (w *worker) look(ctx context.Context, over <-chan struct{}) {
	for !w.dead() {
		select {
		case <-over:
			return
		case <-time.After(rand64(w.random, longestPause)):
			w.read(ctx, w.random.IntN(rows))
		}
	}
}

func (w *worker) dead() bool {
	t := w.world.truth
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.in.dead
}

func (w *worker) operate(ctx context.Context) {
	in, row := w.in, w.random.IntN(rows)
	switch w.random.IntN(20) {
	default:
		w.read(ctx, row)
	case 0, 1:
		w.readMany(ctx)
	case 2, 3:
		w.change("write and Invalidate", []int{row}, func(write func() error) error {
			return errors.Join(write(), in.invalidate(ctx, []int{row}))
		})
	case 4, 5:
		w.change("Update", []int{row}, func(write func() error) error {
			return in.update(ctx, row, func(context.Context) error { return write() })
		})
	case 6:
		w.change("Put", []int{row}, func(write func() error) error {
			return in.put(ctx, row, func(context.Context) (int64, error) { err := write(); return w.world.truth.read(row), err })
		})
	case 7:
		tag := w.random.IntN(tags)
		w.change("write and InvalidateTags", tagged(tag), func(write func() error) error {
			return errors.Join(write(), in.invalidateTags(ctx, tag))
		})
	case 8:
		kind := w.random.IntN(2) == 0
		w.change("write and InvalidateAll", []int{row, (row + 1) % rows}, func(write func() error) error {
			return errors.Join(write(), in.invalidateAll(ctx, kind))
		})
	case 9:
		w.change("Intend", []int{row, (row + 1) % rows}, func(write func() error) error {
			return in.transact(ctx, []int{row, (row + 1) % rows}, nil, w.reading(write))
		})
	case 13, 14:
		first, also := row, (row+1)%rows
		w.change("Intend and Also", []int{first, also}, func(write func() error) error {
			return in.transact(ctx, []int{first}, nil, w.naming(also, write))
		})
	case 10:
		tag := w.random.IntN(tags)
		w.change("Intend a tag", tagged(tag), func(write func() error) error { return in.transact(ctx, nil, []int{tag}, w.reading(write)) })
	case 18:
		w.change("write and InvalidateTags that move", []int{row}, func(write func() error) error {
			return errors.Join(write(), in.invalidateTags(ctx, movingTags...))
		})
	case 19:
		w.change("Intend tags that move", []int{row}, func(write func() error) error { return in.transact(ctx, nil, movingTags, w.reading(write)) })
	case 11:
		err := in.warm(ctx, []int{row, (row + 1) % rows, (row + 2) % rows})
		w.world.truth.note("%s has warmed three rows from %d on, %v", in.name, row, err)
	case 12:
		if all := w.random.IntN(2) == 0; w.world.plan.partly {
			w.world.truth.note("%s serves all rows: %t", in.name, all)
			in.serve(all)
		}
	}
}

// movingTags are all tags of versions: whichever version of a row is cached has one of them.
var movingTags = []int{tags, tags + 1, tags + 2}

// tagged are the rows with a tag.
func tagged(tag int) (with []int) {
	for row := tag % tags; row < rows; row += tags {
		with = append(with, row)
	}
	return with
}

func (w *worker) read(ctx context.Context, row int) {
	t := w.world.truth
	least := t.floor(w.in, row, w.world.plan.lag())
	got, err := w.in.get(ctx, row)
	t.note("%s reads %d of row %d, %v", w.in.name, got, row, err)
	w.check(row, least, got, err)
}

func (w *worker) readMany(ctx context.Context) {
	t, all, least := w.world.truth, make([]int, rows), make([]int64, rows)
	for row := range rows {
		all[row], least[row] = row, t.floor(w.in, row, w.world.plan.lag())
	}
	got, err := w.in.getMany(ctx, all)
	t.note("%s reads %v, %v", w.in.name, got, err)
	for row := range rows {
		w.check(row, least[row], got[row], err)
	}
}

// check says what is wrong with an answer. A read needs no Redis.
func (w *worker) check(row int, least, got int64, err error) {
	switch t := w.world.truth; {
	case err != nil:
		t.complain("%s: row %d: %v", w.in.name, row, err)
	case got >= uncommitted:
		t.complain("%s reads %d of row %d, which was never committed", w.in.name, got-uncommitted, row)
	case got < least:
		t.complain("%s reads %d of row %d, and began after %d was invalidated", w.in.name, got, row, least)
	}
}

// change makes a call that writes rows, in two moments, and notes what it returned.
func (w *worker) change(name string, rows []int, call func(write func() error) error) {
	t := w.world.truth
	var versions []int64
	pause := rand64(w.random, longestLoad)
	began := time.Now()
	err := call(func() error {
		time.Sleep(pause)
		w.committed(name, began, rows)
		versions = t.write(rows...)
		time.Sleep(pause)
		return nil
	})
	if errors.Is(err, errRolledBack) {
		err = nil // nothing was written, and nobody wanted that
	}
	t.note("%s: %s of %v, versions %v: %v", w.in.name, name, rows, versions, err)
	if written := len(versions) > 0; err != nil && !strings.HasPrefix(name, "write and") && written != cacheguard.Written(err) {
		t.complain("%s: %s: Written is %t, and that is wrong: %v", w.in.name, name, !written, err)
	}
	t.changed(w.in, rows, versions, err)
}
