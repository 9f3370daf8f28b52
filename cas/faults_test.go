package cas

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestErrorsHaveAPartOfALongKey(t *testing.T) {
	t.Parallel()
	p, key := newPair(t, shared, patient), strings.Repeat("k", 60_000)
	p.proxy.On(func([]string) bool { return true }, redistest.ReplyError("ERR no"))
	for name, call := range map[string]func() error{
		"Get":    func() error { _, _, err := Get[string](t.Context(), p.near, key); return err },
		"Swap":   func() error { _, err := Swap(t.Context(), p.near, key, "1", "v"); return err },
		"Delete": func() error { return Delete(t.Context(), p.near, key, "1") },
		"Update": func() error {
			_, err := Update(t.Context(), p.near, key, func(v string, _ bool) (string, error) { return v, nil })
			return err
		},
	} {
		if err := call(); err == nil || len(err.Error()) > 1000 {
			t.Errorf("the error of %s: %.300v", name, err)
		}
	}
}

func TestAWriteWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{redistest.DropReply, redistest.SwallowReply, redistest.CutBefore} {
		t.Run("swap, "+string(fault), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, shared, patient)
			lost := p.proxy.On(swaps, fault).Times(2)
			wantValue(t, p.far, "k", "a", create(t, p.near, "k", "a"))
			expect.Equal(t, "lost", lost.Count(), 2)
		})
		t.Run("delete, "+string(fault), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, shared, patient)
			version := create(t, p.far, "k", "a")
			lost := p.proxy.On(deletes, fault).Times(2)
			if err := Delete(t.Context(), p.near, "k", version); err != nil {
				t.Error(err)
			}
			_, _, err := Get[string](t.Context(), p.far, "k")
			expect.ErrorIs(t, err, ErrNotFound)
			expect.Equal(t, "lost", lost.Count(), 2)
		})
	}
}

// overtaken makes the near store swap old for "mine" with a fault in the first request. Between that and its repetition, it calls
// meanwhile.
func overtaken(t *testing.T, p pair, fault redistest.Fault, old Version, meanwhile func()) done {
	t.Helper()
	first := p.proxy.On(swaps, fault).Times(1)
	again := p.proxy.On(swaps, redistest.Hold)
	swapped := swapAsync(t.Context(), p.near, "k", old, "mine")
	<-first.Hit()
	<-again.Hit()
	meanwhile()
	again.Remove()
	return <-swapped
}

func TestASwapThatWasDoneAndOvertakenBeforeItsReplyCameIsASuccess(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, patient)
	old := create(t, p.far, "k", "old")
	var after Version
	d := overtaken(t, p, redistest.DropReply, old, func() {
		_, mine, err := Get[string](t.Context(), p.far, "k")
		if err != nil {
			t.Error(err)
		}
		after = mustSwap(t, p.far, "k", mine, "after")
	})
	expect.ErrorIs(t, d.err, nil)
	wantValue(t, p.far, "k", "after", after)
}

func TestACreationThatWasDeletedBeforeItsReplyCameIsNotRepeated(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, patient)
	d := overtaken(t, p, redistest.DropReply, "", func() {
		_, mine, err := Get[string](t.Context(), p.far, "k")
		if err != nil {
			t.Error(err)
		}
		if err := Delete(t.Context(), p.far, "k", mine); err != nil {
			t.Error(err)
		}
	})
	expect.ErrorIs(t, d.err, nil)
	_, _, err := Get[string](t.Context(), p.far, "k")
	expect.ErrorIs(t, err, ErrNotFound)
}

func TestARepeatedSwapThatWasNotDoneBeforeOthersIsAConflict(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, patient)
	old := create(t, p.far, "k", "old")
	var theirs Version
	d := overtaken(t, p, redistest.CutBefore, old, func() { theirs = mustSwap(t, p.far, "k", old, "theirs") })
	expect.ErrorIs(t, d.err, ErrConflict)
	wantValue(t, p.far, "k", "theirs", theirs)
}

func TestARepeatedSwapThatRedisHasForgottenIsUncertain(t *testing.T) {
	t.Parallel()
	for name, creates := range map[string]bool{"swap": false, "create": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, shared, patient)
			p.near.recent, p.far.recent = 16, 16
			var old Version
			if !creates {
				old = create(t, p.far, "k", "old")
			}
			d := overtaken(t, p, redistest.DropReply, old, func() {
				_, version, err := Get[string](t.Context(), p.far, "k")
				if err != nil {
					t.Error(err)
				}
				for range p.far.recent {
					version = mustSwap(t, p.far, "k", version, "theirs")
				}
				if creates {
					if err := Delete(t.Context(), p.far, "k", version); err != nil {
						t.Error(err)
					}
				}
			})
			expect.ErrorIs(t, d.err, ErrUncertain)
			if creates {
				_, _, err := Get[string](t.Context(), p.far, "k")
				expect.ErrorIs(t, err, ErrNotFound)
			}
		})
	}
}

// The first copy arrives after a repetition was done and others have written.
func TestACopyThatArrivesLateChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPair(t, s, patient)
	old := create(t, p.far, "k", "old")
	late := p.proxy.On(swaps, redistest.Hold).Times(1)
	version := mustSwap(t, p.near, "k", old, "mine") // the held request is given up after the read time-out
	after := mustSwap(t, p.far, "k", version, "after")
	before := s.Commands()["evalsha"] + s.Commands()["eval"]
	late.Release()
	redistest.Await(t, "the late copy ran", func() bool {
		return s.Commands()["evalsha"]+s.Commands()["eval"] > before
	})
	wantValue(t, p.far, "k", "after", after)
}

func TestACallerWhoseContextEndsLearnsThatTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, patient)
	held := p.proxy.On(swaps, redistest.HoldReply)
	ctx, cancel := context.WithCancel(t.Context())
	swapped := swapAsync(ctx, p.near, "k", "", "mine")
	<-held.Hit()
	cancel()
	d := <-swapped
	expect.ErrorIs(t, d.err, ErrUncertain, context.Canceled)
	wantValue(t, p.far, "k", "mine", d.version)
	held.Remove()
}

func TestARedisThatDoesNotAnswerIsGivenUpAfterRedisTimeout(t *testing.T) {
	t.Parallel()
	p := newPair(t, shared, redistest.Brisk)
	p.proxy.BlackHole(true)
	_, err := Swap(t.Context(), p.near, "k", "", "v")
	expect.ErrorIs(t, err, ErrUncertain, context.DeadlineExceeded)
	_, _, err = Get[string](t.Context(), p.near, "k")
	expect.ErrorIs(t, err, context.DeadlineExceeded)
	p.proxy.BlackHole(false)
	p.proxy.Cut()
}

func TestDeletingWorksWhenRedisIsOutOfMemory(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb, Config{})
	version := create(t, s, "k", "v")
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := Swap(t.Context(), s, "k", version, "w")
	expect.ErrorIs(t, err, ErrUncertain)
	wantValue(t, s, "k", "v", version)
	if err := Delete(t.Context(), s, "k", version); err != nil {
		t.Error(err)
	}
}

// The same for a creation that left nothing behind.
func TestACopyOfACreationThatArrivesAfterTheValueWasDeletedChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPair(t, s, patient)
	late := p.proxy.On(swaps, redistest.Hold).Times(1)
	version := create(t, p.near, "k", "mine") // the held request is given up after the read time-out
	if err := Delete(t.Context(), p.far, "k", version); err != nil {
		t.Fatal(err)
	}
	before := s.Commands()["evalsha"] + s.Commands()["eval"]
	late.Release()
	redistest.Await(t, "the late copy ran", func() bool {
		return s.Commands()["evalsha"]+s.Commands()["eval"] > before
	})
	_, _, err := Get[string](t.Context(), p.far, "k")
	expect.ErrorIs(t, err, ErrNotFound)
}
