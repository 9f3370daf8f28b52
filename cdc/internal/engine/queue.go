package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// MaxNames is how many keys and tags a part of a large transaction has, and how many are read ahead of Redis.
const MaxNames = 10_000

// Part is what a transaction changes, or a part of a large one.
type Part[P any] struct {
	Names        cacheguard.Changes
	Whole        []*Table // tables without a record of which rows have changed
	Rows         int
	Transactions int       // that end in it and have rows
	Marks        []uint64  // the feed's numbers of its transactions, for Settle
	Committed    time.Time // when its last transaction committed, by the database's clock; or when nothing was left to read

	// Until is a position: everything before it is invalidated once this part is. It counts if Ends: whole transactions end here.
	Until P
	Ends  bool
}

// Len is how many names it has.
func (p *Part[P]) Len() int { return len(p.Names.Keys) + len(p.Names.Tags) + len(p.Whole) }

// Change adds the keys and tags that a change of a row makes old. If they are not known, the kinds of the table are invalidated whole instead: the row
// in the log stays as it is, so whoever waited for it to be mended would wait for good.
func (p *Part[P]) Change(e *Engine, t *Table, c cdc.Change) {
	p.Rows++
	names, err := t.Changes(c)
	if err != nil {
		e.Unmappable(c.Op, err)
		p.AddWhole(t)
		return
	}
	p.Names.Keys = append(p.Names.Keys, names.Keys...)
	p.Names.Tags = append(p.Names.Tags, names.Tags...)
}

// AddWhole adds tables whose changed rows are not known.
func (p *Part[P]) AddWhole(tables ...*Table) {
	for _, t := range tables {
		if !slices.Contains(p.Whole, t) {
			p.Whole = append(p.Whole, t)
		}
	}
}

func (p *Part[P]) add(next *Part[P]) {
	p.Names.Keys = append(p.Names.Keys, next.Names.Keys...)
	p.Names.Tags = append(p.Names.Tags, next.Names.Tags...)
	p.AddWhole(next.Whole...)
	p.Rows += next.Rows
	p.Transactions += next.Transactions
	p.Marks = append(p.Marks, next.Marks...)
	if next.Committed.After(p.Committed) {
		p.Committed = next.Committed
	}
	if next.Ends {
		p.Until, p.Ends = next.Until, true
	}
}

// Dedupe leaves each name once.
func (p *Part[P]) Dedupe() {
	slices.Sort(p.Names.Keys)
	slices.Sort(p.Names.Tags)
	p.Names.Keys, p.Names.Tags = slices.Compact(p.Names.Keys), slices.Compact(p.Names.Tags)
}

// queue holds what was read and is not yet invalidated. Transactions that arrive while Redis is asked go together into the next
// request: each keeps its place, and none is split unless it is large.
type queue[P any] struct {
	mu    sync.Mutex
	next  *Part[P]      // nil: nothing waits
	ready chan struct{} // has one if something waits
	room  chan struct{} // has one if there may be room
}

func newQueue[P any]() *queue[P] {
	return &queue[P]{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds a part. It waits while there is no room.
func (q *queue[P]) put(ctx context.Context, part *Part[P]) error {
	for !q.tryPut(part) {
		select {
		case <-q.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (q *queue[P]) tryPut(part *Part[P]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.next == nil:
		q.next = part
	case q.next.Len() > 0 && q.next.Len()+part.Len() > MaxNames:
		return false
	default:
		q.next.add(part)
	}
	poke(q.ready)
	return true
}

// take waits for a part, and takes everything that waits.
func (q *queue[P]) take(ctx context.Context) (*Part[P], error) {
	for {
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if part := q.grab(); part != nil { // another take may have been faster
			return part, nil
		}
	}
}

func (q *queue[P]) grab() *Part[P] {
	q.mu.Lock()
	defer q.mu.Unlock()
	part := q.next
	q.next = nil
	poke(q.room)
	return part
}

// poke leaves a sign for one who waits.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
