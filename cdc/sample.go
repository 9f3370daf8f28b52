package cdc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// sample is a row that a Report looks at.
type sample struct {
	table, key    string
	committed     time.Time
	inspect       func(ctx context.Context, key string) (cacheguard.Inspection, error)
	served, truth func(context.Context) answer
}

// answer is what the cache or the database says.
type answer struct {
	value any
	err   error
}

func answerOf[V any](v V, err error) answer { return answer{v, err} }

// equals reports whether both say the same, which may be that there is no such thing.
func (a answer) equals(b answer) bool {
	switch {
	case a.err == nil && b.err == nil:
		return reflect.DeepEqual(a.value, b.value)
	case a.err == nil || b.err == nil:
		return false
	}
	return errors.Is(b.err, a.err) || a.failure() == nil && b.failure() == nil
}

// failure is an error that does not say that there is no such thing.
func (a answer) failure() error {
	if errors.Is(a.err, cacheguard.ErrNotFound) || errors.Is(a.err, sql.ErrNoRows) {
		return nil
	}
	return a.err
}

// same compares what the cache serves with what the database has. If they differ, and the database has something else by now, it asks again.
func (s *sample) same(ctx context.Context) (bool, error) {
	before := s.truth(ctx)
	for {
		served := s.served(ctx)
		if served.equals(before) {
			return true, nil
		}
		after := s.truth(ctx)
		if err := errors.Join(served.failure(), after.failure()); err != nil {
			return false, err
		}
		if after.equals(before) {
			return false, nil
		}
		before = after
	}
}

// old describes an entry that is old.
func (s *sample) old(ctx context.Context, after time.Duration) OldValue {
	o := OldValue{Table: s.table, Key: s.key, Committed: s.committed, After: after}
	asked := time.Now()
	i, err := s.inspect(ctx, s.key)
	if err != nil {
		o.Why = "not known: " + err.Error()
		return o
	}
	o.Why, o.Epochs = why(&i, asked.Add(time.Since(asked)/2).Sub(s.committed)), i.TagVersions // Redis looked in between
	return o
}

// why says how an entry may have become old, so long after the commit. An entry has no name of the instance that stored it.
func why(i *cacheguard.Inspection, since time.Duration) string {
	stored := since - i.Age // after the commit
	began := stored - i.LoadTook
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	switch {
	case i.State != cacheguard.EntryFresh && i.State != cacheguard.EntryStale && i.State != cacheguard.EntryAbsent:
		if i.Here.InTier {
			return fmt.Sprintf("Redis has nothing valid (%s): it is in the memory of this instance", i.State)
		}
		return fmt.Sprintf("Redis has nothing valid by now (%s)", i.State)
	case stored < 0:
		return fmt.Sprintf("it was stored %v before the commit, and not invalidated: does Changed name another key?", round(-stored))
	case began < 0:
		return fmt.Sprintf("its load began %v before the commit, and was stored %v after it", round(-began), round(stored))
	}
	return fmt.Sprintf("its load began %v after the commit, took %v, and read an old row: from a replica that is behind?", round(began), round(i.LoadTook))
}
