package segment

import (
	"testing"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The next caller that needs the units completes the move of a mover that died, however far that had come.
func TestAMoveWhoseMoverDiedIsCompletedOnce(t *testing.T) {
	t.Parallel()
	for step, steps := range map[string]int{"sent": 1, "arrived": 2} {
		for call, do := range map[string]func(c *Counter) (left int64, err error){
			"take":      func(c *Counter) (int64, error) { return 0, c.Take(t.Context(), name, 40) },
			"rebalance": func(c *Counter) (int64, error) { return 40, c.Rebalance(t.Context(), name) },
			"total":     func(c *Counter) (int64, error) { return c.Total(t.Context(), name) },
		} {
			t.Run(step+" before "+call, func(t *testing.T) {
				t.Parallel()
				c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 4, 40)
				m := newMove(1, 2, 7)
				calls := []script.Call{
					m.sending(c.key(name, m.from)),
					m.arriving(c.key(name, m.to), lookAt(t, c).until),
				}
				for _, call := range calls[:steps] {
					_, err := c.pipelined(t.Context(), []script.Call{call})
					ok(t, err)
				}
				left, err := do(c)
				ok(t, err)
				if s := lookAt(t, c); s.total() != left || len(s.moves) != 0 {
					t.Errorf("%d are left, want %d; %d moves", s.total(), left, len(s.moves))
				}
			})
		}
	}
}

func TestALateCopyOfAMoveMovesNothing(t *testing.T) {
	t.Parallel()
	c := newStock(t, redistest.DeclaredKeys(t, shared.Client(t)), 2, 20)
	m := newMove(0, 1, 5)
	until := lookAt(t, c).until
	ok(t, c.carryOut(t.Context(), name, until, []move{m}))
	for _, copied := range []script.Call{m.sending(c.key(name, 0)), m.arriving(c.key(name, 1), until)} {
		_, err := c.pipelined(t.Context(), []script.Call{copied})
		ok(t, err)
	}
	s := lookAt(t, c)
	if s.left[0] != 5 || s.left[1] != 15 || len(s.moves) != 0 {
		t.Errorf("%+v", s)
	}
}

// While the taker reads, all units move from the segment that it reads last to the one that it has read already.
func TestUnitsThatMoveWhileTheyAreCountedAreNotMissed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := newStock(t, server.Client(t), 2, 6)
	shift(t, c, 0, 1, 3)
	p := redistest.StartProxy(t, server.Addr())
	taker := another(t, c, p.Client(t))
	reads := server.Commands()["hgetall"]
	second := p.On(func(args []string) bool {
		return args[0] == "hgetall" && args[1] == c.key(name, 1)
	}, redistest.Hold).Times(1)
	looked := make(chan *snapshot, 1)
	go func() { // owner: the test; ends with the look; joined by receiving
		s, err := taker.snapshot(t.Context(), name)
		if err != nil {
			t.Error(err)
		}
		looked <- s
	}()
	<-second.Hit()
	redistest.Await(t, "the first segment was read", func() bool { return server.Commands()["hgetall"] > reads })
	shift(t, c, 1, 0, 6)
	second.Release()
	before := <-looked
	if before.total() != 0 {
		t.Fatalf("it saw %d units", before.total())
	}
	if before.still(lookAt(t, c)) {
		t.Error("six units were missed")
	}
}

func TestASnapshotProvesNothingWhileUnitsAreOnTheirWayOrHaveComeIn(t *testing.T) {
	t.Parallel()
	quiet := &snapshot{versions: []string{"1", "2"}}
	moving := &snapshot{versions: quiet.versions, moves: []move{newMove(0, 1, 1)}}
	changed := &snapshot{versions: []string{"1", "3"}}
	var none *snapshot
	for _, c := range []struct {
		before, now *snapshot
		want        bool
	}{{quiet, quiet, true}, {none, quiet, false}, {moving, quiet, false}, {quiet, changed, false}} {
		if got := c.before.still(c.now); got != c.want {
			t.Errorf("%+v, then %+v: %v", c.before, c.now, got)
		}
	}
}

func FuzzMovesKeepTheirPromises(f *testing.F) {
	f.Add([]byte{0, 0, 9, 3}, uint8(2), uint8(5))
	f.Add([]byte{200}, uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, lefts []byte, to, units uint8) {
		if len(lefts) == 0 || len(lefts) > maxSegments {
			return
		}
		s := &snapshot{left: make([]int64, len(lefts))}
		for i, left := range lefts {
			s.left[i] = int64(left)
		}
		into := int(to) % len(lefts)
		after := applied(t, s, s.gathering(into, int64(units)))
		if got, want := after.left[into]-s.left[into], min(int64(units), s.total()-s.left[into]); got != want {
			t.Errorf("gathered %d, want %d", got, want)
		}
		after = applied(t, s, s.levelling())
		for i, left := range after.left {
			if left < s.total()/int64(len(lefts)) || left > s.total()/int64(len(lefts))+1 {
				t.Errorf("segment %d has %d of %d", i, left, s.total())
			}
		}
	})
}

// applied is what moves make of a snapshot.
func applied(t *testing.T, s *snapshot, moves []move) *snapshot {
	t.Helper()
	after := &snapshot{left: append([]int64(nil), s.left...)}
	for _, m := range moves {
		if m.units <= 0 || m.from == m.to {
			t.Errorf("move %+v", m)
		}
		after.left[m.from] -= m.units
		after.left[m.to] += m.units
		if after.left[m.from] < 0 {
			t.Errorf("segment %d has %d left", m.from, after.left[m.from])
		}
	}
	if after.total() != s.total() {
		t.Errorf("%d units became %d", s.total(), after.total())
	}
	return after
}

func FuzzSegmentsAreSpreadOverTheSlots(f *testing.F) {
	f.Add("a", uint8(8))
	f.Add("}{", uint8(1))
	f.Add("a}b", uint8(3))
	f.Add(`\1.0/a`, uint8(64))
	f.Fuzz(func(t *testing.T, name string, segments uint8) {
		if name == "" || segments == 0 || segments > maxSegments {
			return
		}
		c := &Counter{cfg: Config{Prefix: "p", Segments: int(segments)}}
		for i := range int(segments) {
			key := c.key(name, i)
			if low, high := i*keys.Slots/int(segments), (i+1)*keys.Slots/int(segments); keys.Slot(key) < low || keys.Slot(key) >= high {
				t.Errorf("segment %d of %d is in slot %d", i, segments, keys.Slot(key))
			}
			if keys.Slot(key) != keys.Slot(receiptKey(key, "id")) {
				t.Errorf("the receipts of %q are elsewhere", key)
			}
		}
	})
}
