package rwlock

import (
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/script"
)

// The model: actors that know only what the protocol tells them do at random what callers, crashes, pauses, networks and
// clocks do, on a real server, one script at a time. After each script, model_check_test.go compares what the server
// holds, what it held before and what the actors believe. The server's clock and its PUBLISH are the model's own,
// by editing the scripts' sources. Everything follows from the seed:
//
//	MODEL_SEED=42 go test ./rwlock -run Model

const (
	modelSteps   = 400
	modelActors  = 7  // at most
	modelHistory = 25 // steps told when a run goes wrong
)

// modelled replaces what would not be replayable: the clock, and messages.
func modelled(source string) string {
	source = strings.Replace(source, `redis.call('TIME')`, `redis.call('HMGET', KEYS[1] .. ':clock', 's', 'us')`, 1)
	return strings.Replace(source, `redis.pcall('PUBLISH', inbox,`, `redis.call('RPUSH', inbox,`, 1)
}

// world is one run of the model. Times are in ms; mono passes, and the server's clock is mono plus skew.
type world struct {
	rdb     *redis.Client
	lock    lock
	rng     *mrand.Rand
	mono    int64
	skew    int64
	actors  []*actor
	copies  []script.Call // requests of which a copy may arrive late
	tokens  int
	told    []string
	problem string

	now    snapshot
	fence  int64                     // the largest so far
	phases map[string]map[int64]bool // the writers' turns that each queued reader has seen
}

// play runs the model and returns the problem it found, if any.
func play(t *testing.T, rdb *redis.Client, seed uint64, edit func(string) string) string {
	t.Helper()
	w := &world{
		rdb: rdb, rng: mrand.New(mrand.NewPCG(seed, 1)), phases: make(map[string]map[int64]bool),
		lock: lockAt(compile(func(source string) string { return modelled(edit(source)) }), "{model-"+rand.Text()+"}"),
		skew: 1_700_000_000_000,
	}
	for i := range 2 + w.rng.IntN(modelActors-1) {
		w.actors = append(w.actors, &actor{name: i, inbox: w.lock.keys[0] + ":inbox" + strconv.Itoa(i%3)})
	}
	defer w.clean()
	for range modelSteps {
		if w.step(); w.problem != "" {
			break
		}
	}
	if w.problem == "" {
		w.settle()
	}
	if w.problem == "" {
		return ""
	}
	return fmt.Sprintf("seed %d: %s\n%s", seed, w.problem, strings.Join(w.told[max(0, len(w.told)-modelHistory):], "\n"))
}

func (w *world) clean() {
	extra := []string{w.lock.keys[0] + ":clock"}
	for _, a := range w.actors {
		extra = append(extra, a.inbox)
	}
	w.rdb.Del(context.Background(), append(extra, w.lock.keys...)...)
}

func (w *world) tell(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf("%8d  ", w.mono)+fmt.Sprintf(format, args...))
}

func (w *world) wrong(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
	}
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *world) step() {
	switch p := w.rng.IntN(100); {
	case p < 20:
		w.mono += w.rng.Int64N(700)
		if w.chance(10) {
			w.mono += w.rng.Int64N(8000)
		}
	case p < 22:
		w.setClock()
	case p < 26 && len(w.copies) > 0:
		w.tell("a copy arrives late")
		w.run(w.copies[max(0, len(w.copies)-1-w.rng.IntN(8))], "")
	case p < 27:
		w.revoke()
	default:
		w.act(w.actors[w.rng.IntN(len(w.actors))])
	}
}

// setClock sets the server's clock back or forward. A leap forward ends leases that are trusted: that is a limit of the
// lock, so trust suffers as much.
func (w *world) setClock() {
	by := w.rng.Int64N(20_000) - 15_000
	w.tell("the clock leaps by %d", by)
	w.skew += by
	if by > 0 {
		for _, a := range w.actors {
			a.heard -= by
			a.until -= by
		}
	}
}

func (w *world) revoke() {
	w.tell("revoke")
	for _, a := range w.actors {
		a.until, a.heard = 0, -longestGrace.Milliseconds() // that is what it is for; a message may be on its way
	}
	call := w.lock.revokeAll(strconv.FormatUint(w.rng.Uint64(), 10))
	w.run(call, "")
	held := w.now.held()
	if w.run(call, ""); len(w.now.held()) < len(held) {
		w.wrong("a copy of a revoke has taken the lock from one of %v", held)
	}
}

// send sends a request, which may take its time, be lost, or run twice, and whose reply may be lost.
func (w *world) send(a *actor, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64)) {
	sent := w.mono
	w.mono += w.rng.Int64N(40)
	if w.chance(5) {
		w.mono += w.rng.Int64N(4000)
	}
	if w.chance(20) {
		w.copies = append(w.copies, call)
	}
	switch p := w.rng.IntN(100); {
	case p < 5:
		w.tell("%d %s (%s), which is lost", a.name, what, a.token)
	case p < 17:
		w.tell("%d %s (%s), and hears nothing", a.name, what, a.token)
		w.run(call, a.token)
	case p < 24:
		w.tell("%d %s (%s), twice", a.name, what, a.token)
		w.run(call, a.token)
		w.mono += w.rng.Int64N(1000)
		heard(w.run(call, a.token), sent)
	default:
		w.tell("%d %s (%s)", a.name, what, a.token)
		heard(w.run(call, a.token), sent)
	}
}

// run runs a script of the token's at the present time, and checks what it did.
func (w *world) run(call script.Call, token string) *redis.Cmd {
	ctx := context.Background()
	at := w.mono + w.skew
	w.rdb.HSet(ctx, w.lock.keys[0]+":clock", "s", at/1000, "us", at%1000*1000+w.rng.Int64N(1000))
	pushed := w.pushed()
	cmd := call.Run(ctx, w.rdb)
	if err := cmd.Err(); err != nil {
		w.wrong("%v", err)
	}
	before := w.now
	w.now = w.look(at)
	w.check(before, token, w.pushed()-pushed)
	return cmd
}

// pushed is how many messages lie in the inboxes.
func (w *world) pushed() (n int64) {
	pipe := w.rdb.Pipeline()
	var sizes []*redis.IntCmd
	for _, a := range w.actors[:min(3, len(w.actors))] {
		sizes = append(sizes, pipe.LLen(context.Background(), a.inbox))
	}
	_, _ = pipe.Exec(context.Background()) // a failure shows in the next script
	for _, size := range sizes {
		n += size.Val()
	}
	return n
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func modelSeeds(t *testing.T, count int) []uint64 {
	t.Helper()
	if given := os.Getenv("MODEL_SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	if given := os.Getenv("MODEL_RUNS"); given != "" {
		count, _ = strconv.Atoi(given)
	}
	first := mrand.Uint64N(1 << 40)
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	for _, seed := range modelSeeds(t, 40) {
		if problem := play(t, rdb, seed, func(source string) string { return source }); problem != "" {
			t.Fatal(problem)
		}
	}
}
