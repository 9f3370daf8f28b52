package semaphore

import (
	"crypto/rand"
	"testing"

	"github.com/cacheguard/go/internal/testing/model"
)

// The model, see package model, which says what callers do; model_check_test.go says what has to be true then.

const (
	modelSteps  = 400
	modelActors = 9 // at most
)

// world is one run of the model.
type world struct {
	*model.Queued
	most int // permits, of the actors that know of the most
}

// player plays the model.
func player(t *testing.T) model.Play {
	t.Helper()
	rdb := shared.Client(t)
	return func(seed uint64, edit func(string) string) string {
		calls := callsAt(compile(func(source string) string { return model.Modelled(edit(source)) }), "{model-"+rand.Text()+"}")
		w := &world{Queued: model.NewQueued(rdb, seed, calls, modelActors)}
		w.Arrive, w.Held, w.Compare = w.arrive, holders, w.compare
		permits, changes := 1+w.Rand.IntN(4), w.Chance(30)
		for i, a := range w.Actors {
			knows := permits
			if changes && i%2 == 1 {
				knows = 1 + w.Rand.IntN(4)
			}
			w.most, a.As = max(w.most, knows), knows
		}
		return w.PlayOut(seed, modelSteps)
	}
}

func (w *world) arrive(a *model.Actor) {
	a.About = w.Keys[0] + ":" + a.Token
	if w.Chance(30) {
		a.Arrived = w.Arrivals.Waited(a.Token)
	}
}

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	player(t).Expect(t, 3)
}

func TestModelFindsEveryMistakeThatIsPutIntoTheScripts(t *testing.T) {
	t.Parallel()
	player(t).ExpectToFind(t, mistakes, rare)
}

// rare are seeds that find the mistakes which few seeds find.
var rare = map[string]uint64{
	"a clock that is set back stops the tickets": 441761175024,
	"a grant names no ticket":                    296243714331,
	"a grant is shorter than its grace":          188189505911,
}

// mistakes are put into the scripts one at a time.
var mistakes = map[string]model.Mistake{
	"one permit too many": {
		"if held < permits and (not queued", "if held <= permits and (not queued"},
	"one too many is handed on": {
		"held >= tonumber(string.match", "held > tonumber(string.match"},
	"a caller that asks passes the queue": {
		"and (not queued or redis.call('ZCARD', queue) == 0)", ""},
	"permits handed on in one run are not counted": {
		"    held = held + 1\n", ""},
	"expired holders stay": {
		"redis.call('ZREMRANGEBYSCORE', holders", "redis.call('ZCOUNT', holders"},
	"dead waiters stay": {
		"redis.call('ZRANGEBYSCORE', alive,", "redis.call('ZRANGEBYSCORE', alive .. 'not',"},
	"a release hands nothing on": {
		"hand_on()\nreturn had", "return had"},
	"a waiter that gives up stays in the queue": {
		"  leave(token)\n  had = 1", "  had = 1"},
	"only one permit is handed on": {
		"while queued do", "for _ = 1, queued and 1 or 0 do"},
	"last come, first served": {
		"local first = redis.call('ZRANGE', queue, 0, 0)[1]\n    local", "local first = redis.call('ZREVRANGE', queue, 0, 0)[1]\n    local"},
	"the next in the queue passes one that knows of fewer permits": {
		"'^%d+:%d+:%d+:(%d+):') or 1)", "'^%d+:%d+:%d+:(%d+):') and 4)"},
	"the place does not count the time waited": {
		"came > 0 and last -", "false and last -"},
	"a clock that is set back stops the tickets": {
		"(fields[5] or 0), 1)", "(fields[4] or 0), 1)"},
	"a grant is shorter than its grace": {
		"lease(tonumber(grace or 0))", "lease(tonumber(grace or 0) / 2)"},
	"a renewal shortens a lease": {
		"math.max(tonumber(till), lease(length))", "lease(length) - 5000"},
	"a clock that is set back lengthens leases": {
		"if score > limit then", "if false then"},
	"a grant names no ticket": {
		"first, ticket .. ':'", "first, '9999999999999999:'"},
	"the granted are not told": {
		"    if inbox then\n      wake", "    if false then\n      wake"},
	"a second revoke takes the next holders' permits": {
		"redis.call('HGET', lock, 'revoker') ~= ARGV[1]", "true"},
	"the revoked are not told so": {
		"'revoked', next_fence()", "'revoked', whole(fence)"},
	"a token that has given up is not remembered": {
		"if ARGV[3] == '1' then", "if false then"},
	"a token that has given up gets a permit": {
		"if late(token) then", "if false then"},
	"keys have no TTL": {
		"if left < least then", "if false then"},
}

func TestADeadWaiterHoldsUpNobodyForLongerThanItsTTLWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	model.SetBack(t, shared.Client(t), callsAt(compile(model.Modelled), "{model-"+rand.Text()+"}"), 1)
}
