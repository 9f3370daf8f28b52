package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Every order of the atomic steps of readers and of one writer, on a model of the scripts. With one reader, the orders also run on the
// scripts themselves, which must do what the model does.

// Versions of the value in the source and in the cache.
const (
	nothing = iota
	oldOne
	newOne
)

// world is the state of source and cache.
type world struct {
	source, cache int
	lease         int // generation; 0: none
	put           int // generation of a Put, whose lease nobody holds: others take it over
	intent        bool
	generations   int
}

// rules are the parts of the protocol that a mutation takes out.
type rules struct{ noTokenCheck, noIntent, noSecondDelete bool }

// trouble is what happens to the writer.
type trouble int

const (
	none       trouble = iota
	intentLost         // between the announcement and the commit
	crash              // between the commit and the end
)

// aGet is a Get, in four steps.
type aGet struct {
	step    int
	lease   int
	loaded  int
	refused bool
	got     int  // what Get returned; nothing: not over
	late    bool // it began after the update had returned
}

const readerSteps = 4

func (r *aGet) next(w *world, rule rules, updated bool) {
	r.step++
	if r.got != nothing {
		return
	}
	switch r.step {
	case 1: // GET
		r.late = updated
		r.got = w.cache
	case 2: // acquire
		switch {
		case w.cache != nothing:
			r.got = w.cache
		case w.intent && !rule.noIntent, w.lease != w.put && w.lease != 0: // waits in vain, and loads without storing
		case w.lease != 0:
			r.lease = w.lease
		default:
			w.generations++
			w.lease, r.lease = w.generations, w.generations
		}
	case 3: // the loader
		r.loaded = w.source
	case 4: // fill
		r.got = r.loaded
		if r.lease == 0 {
			return
		}
		if r.refused = w.lease != r.lease && !rule.noTokenCheck; !r.refused {
			w.cache, w.lease = r.loaded, 0
		}
	}
}

const writerSteps = 6

// writerStep makes a step of the writer.
func writerStep(w *world, step int, rule rules, bad trouble) {
	switch step {
	case 1: // lock
	case 2: // begin_update
		w.cache, w.lease, w.intent = nothing, 0, true
	case 3:
		if bad == intentLost {
			w.intent = false
		}
	case 4:
		w.source = newOne
	case 5: // end_update
		if bad == crash {
			return
		}
		if !rule.noSecondDelete {
			w.cache, w.lease = nothing, 0
		}
		w.intent = false
	case 6: // unlock
	}
}

// play runs a schedule, where 0 is a step of the writer and i one of reader i, and returns what is wrong with it.
func play(schedule []int, readers, start int, rule rules, bad trouble) (wrong string, w world, all []aGet) {
	w = world{source: oldOne, cache: start}
	all = make([]aGet, readers)
	written := 0
	for _, who := range schedule {
		if who == 0 {
			written++
			writerStep(&w, written, rule, bad)
		} else {
			all[who-1].next(&w, rule, written == writerSteps && bad != crash)
		}
	}
	for i, r := range all {
		if r.late && r.got != newOne {
			return fmt.Sprintf("reader %d got version %d after the update", i+1, r.got), w, all
		}
	}
	if w.cache != nothing && w.cache != w.source { // the intent of a dead writer has expired, and hits are served
		return fmt.Sprintf("at rest the cache has version %d, the source %d", w.cache, w.source), w, all
	}
	return "", w, all
}

// schedules calls f with every order of the steps. The slice is f's until it returns.
func schedules(readers int, f func([]int)) {
	left := slices.Repeat([]int{readerSteps}, readers+1)
	left[0] = writerSteps
	orders(left, f)
}

// check plays all schedules and returns how many there are, and one with something wrong.
func check(readers int, rule rules) (count int, wrong string) {
	for _, start := range []int{nothing, oldOne} {
		for _, bad := range []trouble{none, intentLost, crash} {
			count = 0
			schedules(readers, func(s []int) {
				count++
				if w, _, _ := play(s, readers, start, rule, bad); w != "" && wrong == "" {
					wrong = fmt.Sprintf("%v, starting with %d, trouble %d: %s", s, start, bad, w)
				}
			})
		}
	}
	return count, wrong
}

func TestNoScheduleOfReadersAndAWriterLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	for readers, want := range map[int]int{1: 210, 2: 210_210} {
		count, wrong := check(readers, rules{})
		expect.Equal(t, "schedules", count, want)
		expect.Equal(t, "wrong", wrong, "")
	}
}

func TestEachPartOfTheProtocolIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]rules{
		"token check":   {noTokenCheck: true},
		"intent":        {noIntent: true},
		"second delete": {noSecondDelete: true},
	} {
		if _, wrong := check(1, rule); wrong == "" {
			t.Errorf("without the %s nothing is wrong", name)
		} else {
			t.Logf("without the %s: %s", name, wrong)
		}
	}
}

// stage runs a schedule with the scripts.
type stage struct {
	*fleet
	key, token string
	source     string
	m          *rebuild
	got        protocol.Acquired
	loaded     string
	refused    bool
	slot       string // of the reader

	together bool // step 2 takes the lock, and step 5 gives it up
	lock     queue.Calls
	fence    int64
}

// lockOf makes the calls of the key's lock.
func (f *fleet) lockOf(key string) queue.Calls {
	base := f.value(key) + ":rw"
	keys := []string{base}
	for _, behind := range []string{":readers", ":writers", ":waiting", ":alive", ":gone"} {
		keys = append(keys, base+behind)
	}
	return queue.Calls{Scripts: lockScripts(), Keys: keys}
}

var lockScripts = sync.OnceValue(func() *queue.Scripts { return rw.Compile(func(source string) string { return source }) })

// ask asks for the lock, and release gives it up.
func (s *stage) ask() script.Call {
	return s.lock.Asking(s.token, "w", 5*time.Second, 0, queue.Unlimited, "", 0)
}
func (s *stage) release() script.Call { return s.lock.Releasing(s.token, s.fence, false) }

// lockUpdate begins an update with its lock.
func (s *stage) lockUpdate(ctx context.Context, valueKey string, lasting time.Duration) (err error) {
	g := s.guards[0]
	s.lock = s.lockOf(s.key)
	call := g.keys.LockUpdate(s.ask(), valueKey, s.token, g.writes.Notice(s.key), lasting)
	s.fence, err = call.Run(ctx, s.redis).Int64()
	return err
}

func (s *stage) write(step int, bad trouble) error {
	ctx, g := context.Background(), s.guards[0]
	switch {
	case s.together && step == 2:
		return s.lockUpdate(ctx, s.value(s.key), 0)
	case s.together && step == 5 && bad != crash:
		call := g.keys.UnlockUpdate(s.release(), s.value(s.key), s.token, g.writes.Notice(s.key), 0, protocol.Filling{})
		return call.Run(ctx, s.redis).Err()
	case step == 2:
		return g.keys.BeginUpdate(s.value(s.key), s.token, g.writes.Notice(s.key), 0).Run(ctx, s.redis).Err()
	case step == 3 && bad == intentLost:
		return s.redis.Del(ctx, s.intent(s.key)).Err()
	case step == 4:
		s.source = "new"
	case step == 5 && bad != crash:
		return g.keys.EndUpdate(s.value(s.key), s.token, g.writes.Notice(s.key), protocol.Filling{}).Run(ctx, s.redis).Err()
	}
	return nil
}

func (s *stage) read(step int) (err error) {
	ctx, g := context.Background(), s.guards[0]
	switch step {
	case 2:
		j := loadSpec[string]{load: load{policy: &g.ordinary}, loader: returns("")}.loadOf(g, s.key, scope{}, nil)
		j.valueKey += s.slot
		s.m = newRebuild(g, j, nil, nil)
		s.got, err = protocol.ParseAcquired(s.guards[0].keys.Acquire(s.m.load.valueKey, protocol.Request{Token: s.m.token, Take: true}).Run(ctx, g.rdb))
	case 3:
		s.loaded = s.source
	case 4:
		if s.got.Status != protocol.Granted {
			return nil
		}
		value := s.loaded
		f := s.m.prepare(ctx, s.m.made(&value), s.got.Generation, protocol.Stamp{}, nil)
		status, err := s.guards[0].keys.Fill(s.m.load.valueKey, f).Run(ctx, g.rdb).Text()
		s.refused = status == "refused"
		return err
	}
	return err
}

func TestTheScriptsDoWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	f, n := newFleet(t, standalone(t), 1, Config{TTL: time.Hour}), 0
	for _, bad := range []trouble{none, intentLost, crash} {
		schedules(1, func(order []int) {
			n++
			s := &stage{fleet: f, key: rand.Text(), token: rand.Text(), source: "old", together: n%2 == 0}
			steps := [2]int{}
			_, w, all := play(order, 1, nothing, rules{}, bad)
			for _, who := range order {
				steps[who]++
				var err error
				if who == 0 {
					err = s.write(steps[who], bad)
				} else {
					err = s.read(steps[who])
				}
				expect.Must(t, err)
			}
			expect.Equal(t, fmt.Sprint(order, bad, s.together, ": cached"), f.exists(f.value(s.key)), w.cache != nothing)
			expect.Equal(t, fmt.Sprint(order, bad, ": intent"), f.exists(f.intent(s.key)), w.intent)
			expect.Equal(t, fmt.Sprint(order, bad, ": lease"), f.exists(f.lease(s.key)), w.lease != 0)
			expect.Equal(t, fmt.Sprint(order, bad, ": refused"), s.refused, all[0].refused)
		})
	}
}
