package mutex

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/model"
)

// The model, see package model: model_actor_test.go says what actors do, model_check_test.go what has to be true then.

const (
	modelSteps  = 400
	modelActors = 7 // at most

	longestLease = 10_000 // ms
)

// world is one run of the model.
type world struct {
	*model.World
	key     string
	scripts map[*script.Script]*script.Script // those of the package, and what stands for them
	fair    bool
	actors  []*actor
	ids     int
	passes  map[string]int // in each process, in a row

	arrivals *model.Arrivals

	looked     looked
	now        snapshot
	fence      int64             // the largest so far
	gone       map[string]string // the token of each id that has given up, and was told so
	successors map[string]bool   // the ids that were named as successors, and whether to go before the queue
	revokes    bool              // it is revoke
	parked     parked
}

// player plays the model.
func player(t *testing.T) model.Play {
	t.Helper()
	rdb := shared.Client(t)
	return func(seed uint64, edit func(string) string) string {
		edited := func(names ...string) *script.Script {
			last, before := len(names)-1, ""
			for _, name := range names[:last] {
				before += model.Modelled(edit(text(name)))
			}
			return script.New(before + queue.Settled(model.Modelled(edit(text(names[last])))))
		}
		w := &world{key: "{model-" + rand.Text() + "}", passes: make(map[string]int), successors: make(map[string]bool), gone: make(map[string]string)}
		w.scripts = map[*script.Script]*script.Script{
			lockScript: edited("fields", "lock_free", "prelude", "lock"), unlockScript: edited("fields", "unlock_lone", "prelude", "unlock"),
			renewScript: edited("fields", "prelude", "renew"), parkScript: edited("fields", "prelude", "park"), revokeScript: edited("fields", "prelude", "revoke"),
		}
		w.World = model.NewWorld(rdb, seed, w.key)
		w.arrivals = model.NewArrivals(w.World)
		w.Look, w.Check = w.look, w.check
		w.fair = w.Chance(40)
		for i := range 2 + w.Rand.IntN(modelActors-1) {
			w.actors = append(w.actors, &actor{name: i, inbox: w.Inboxes[i%len(w.Inboxes)]})
		}
		defer w.Clean(keysOf(w.key)...)
		w.Play(modelSteps, model.Deeds{
			Act: func() { w.act(w.actors[w.Rand.IntN(len(w.actors))]) }, Revoke: w.revoke, Leap: w.leap, Settle: w.settle,
		})
		return w.Verdict(seed)
	}
}

// leap shortens all trust when the clock is set forward.
func (w *world) leap(by int64) {
	w.parked.until -= by
	for _, a := range w.actors {
		a.heard -= by
		a.until -= by
	}
}

func (w *world) revoke() {
	for _, a := range w.actors {
		a.until, a.heard = 0, -longestGrace.Milliseconds() // that is what it is for; a message may be on its way
	}
	held := w.now
	w.parked = parked{}
	w.revokes = true
	w.Run(w.edited(revoking(w.key, "told")), "")
	w.revokes = false
	if w.now.token() != "" && w.now.token() == held.token() && w.now.number("fence") == held.number("fence") && w.now.live() {
		w.Wrong("%s still holds after a revoke", w.now.token())
	}
}

// edited is the call with the script that stands for its own.
func (w *world) edited(call script.Call) script.Call {
	call.Script = w.scripts[call.Script]
	return call
}

func (w *world) send(a *actor, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64), unheard func()) {
	w.Send(a.name, a.calls.id, what, w.edited(call), heard, unheard)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	player(t).Expect(t, 2)
}

func TestModelFindsEveryMistakeThatIsPutIntoTheScripts(t *testing.T) {
	t.Parallel()
	player(t).ExpectToFind(t, mistakes, rare)
}

// rare are seeds that find the mistakes which few seeds find.
var rare = map[string]uint64{
	"the common lock forgets the hash with its lease":     604348416436,
	"a second request to park finds the lock gone":        531023669926,
	"a parked lock ends with the lease that it had":       660601424819,
	"the place does not count the time waited":            214810137465,
	"a successor goes before the queue though it may not": 304708463489,
	"the common lock goes to an id that has given up":     959835143508,
	"renew does not look at the token":                    617326290462,
	"park does not look at the token":                     61178849808,
	"a grant is shorter than its grace":                   314899464418,
	"an id that has parked is not remembered":             180595286242,
	"a successor that has given up gets the lock":         1051928933970,
	"one hold of an owner shortens the lease of another":  69594107378,
	"another hold is trusted for too long":                97911243629,
	"an answer has no fence":                              190348009696,
	"a clock that is set back stops the tickets":          37553218525,
}

// mistakes are put into the scripts one at a time.
var mistakes = map[string]model.Mistake{
	"unlock does not look at the token": {
		"if not holds(id, token) then\n  if s.ticket", "if s.token == '' then\n  if s.ticket"},
	"the common unlock does not look at the token": {
		"fields[1] == ARGV[1] and not", "fields[1] ~= '' and not"},
	"the common unlock does not look at the queue": {
		"and not fields[5] and", "and"},
	"the common lock takes what is held": {
		"fields[1] == '' and fields[2]", "fields[1] and fields[2]"},
	"renew does not look at the token": {
		"if not holds(id, token) then\n  return redis", "if s.token == '' then\n  return redis"},
	"a grant goes to a dead waiter": {
		"if alive and tonumber(alive) > now then", "if alive then"},
	"a waiter is passed over that lives": {
		"tonumber(alive) > now then", "tonumber(alive) > now + 1000 then"},
	"the last in the queue is first": {
		"'ZPOPMIN'", "'ZPOPMAX'"},
	"the place does not count the time waited": {
		"whole(ticket - waited)", "whole(ticket)"},
	"a clock that is set back stops the tickets": {
		"math.max(micros - s.asked, 1)", "math.max(micros - s.ticket, 1)"},
	"a caller that asks goes before the queue": {
		"local first, fence, err = promote(key, queue)", "local first, fence, err"},
	"a successor goes before the queue though it may not": {
		"ARGV[7] == '1'", "true"},
	"unlock hands nothing on": {
		"if s.ticket ~= 0 or successor then", "if successor then"},
	"a waiter that gives up stays in the queue": {
		"  if s.ticket ~= 0 and leave(key, queue, id) then\n    return 0\n  end\n  local more", "  local more"},
	"fences follow the clock alone": {
		"math.max(s.fence + 1, micros)", "micros"},
	"common fences follow the clock alone": {
		"fields[2] + 0 < micros and", ""},
	"a grant has the old fence": {
		"local fence = math.max(s.fence + 1, micros)", "local fence = math.max(s.fence, s.last and 0 or micros)"},
	"a grant is shorter than its grace": {
		"inbox, tonumber(grace))", "inbox, math.floor(grace / 2))"},
	"a grant is not told": {
		"if not err and inbox ~= '' then", "if false then"},
	"an answer has no fence": {
		"return {0, left, tonumber(s.fence), micros}", "return {0, left, 0, micros}"},
	"a clock that is set back lengthens leases": {
		"if held and deadline - now > was then", "if false then"},
	"the hash is forgotten with its lease": {
		"  if tonumber(s.kept) <", "  if false and tonumber(s.kept) <"},
	"the common lock forgets the hash with its lease": {
		"and fields[4] - 600000 >", "and fields[4] + 600000 >"},
	"unlock does not remember the last holder": {
		"if more[1] == id then", "if false then"},
	"one hold of an owner ends all": {
		"  if s.holds ~= '' then\n    although", "  if false then\n    although"},
	"another hold of an owner ends the first": {
		"s.holds .. id .. ' ')", "id .. ' ')"},
	"another hold is trusted for too long": {
		"return {1, left, ", "return {1, left + 5000, "},
	"one hold of an owner shortens the lease of another": {
		"length = math.max(length, math.min(deadline - now, was))", ""},
	"an id that has given up is not remembered": {
		"if ARGV[3] == '1' then", "if false then"},
	"an id that has given up gets the lock": {
		"if late(id) then", "if false then"},
	"the common lock goes to an id that has given up": {
		"(not fields[7] or", "(true or"},
	"a successor that has given up gets the lock": {
		"if successor and late(successor) then", "if false then"},
	"a parked lock is free": {
		"'token', parked)", "'token', '')"},
	"a parked lock stays its holder's": {
		"'token', parked)", "'token', id)"},
	"a parked lock ends with the lease that it had": {
		"extend(key, '', tonumber(ARGV[2]))\n", ""},
	"park does not look at the token": {
		"if not holds(id, id) then", "if s.token == '' then"},
	"a second request to park finds the lock gone": {
		"if s.token == parked then\n  return 1\nend", ""},
	"an id that has parked is not remembered": {
		"if ARGV[3] == '1' then\n  remember(key, gone, id)\nend\nif not holds(id, id)",
		"if not holds(id, id)"},
	"a revoked lock stays": {
		"'token', '', 'holds', '', 'revoked', s.token", "'revoked', s.token"},
}
