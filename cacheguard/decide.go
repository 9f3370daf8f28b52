package cacheguard

import "github.com/cacheguard/go/internal/cache/tier"

// state says what a read found.
type state int

const (
	missing     state = iota // nothing
	fresh                    // a value, or remembered absence
	ageing                   // fresh, and drawn to be replaced early
	stale                    // a value past its TTL, within StaleFor
	expired                  // a value past its TTL, which this Guard does not serve
	revoked                  // something that was made under an epoch that is over: nobody may see it
	unusable                 // something that is no entry, or not of this type
	alienEntry               // what another version of the program stored, and this one cannot decode, or what belongs to another kind
	unreachable              // Redis gave no answer
)

// action is what a call does after a read.
type action int

const (
	doServe     action = iota // return what was found
	doRefresh                 // return what was found, and replace it in the background
	doRebuild                 // load through the lease
	doBypass                  // load without Redis
	doLoadApart               // load, and leave what is stored as it is
	doLoadFirst               // load, and ask a Redis that is slow only if that fails; of a GetMany, which does not read
)

// decide is the table of Get, GetMany and Fetch: it says which state leads to which action.
func decide(s state) action {
	switch s {
	case fresh:
		return doServe
	case ageing, stale:
		return doRefresh
	case unreachable:
		return doBypass
	case alienEntry:
		return doLoadApart
	case missing, expired, revoked, unusable:
	}
	return doRebuild
}

// decision is an action and what it needs.
type decision[V any] struct {
	action   action
	found[V]             // doServe, doRefresh: the answer; doRebuild: what is replaced, nil if nobody can read it
	aged     bool        // doRefresh, doRebuild: the value seems too old
	reason   *RedisError // doBypass: why Redis cannot be used
}

// found is an answer: a value, or remembered absence.
type found[V any] struct {
	value *V // nil: absence
	how   Outcome
	drawn *tier.Early // what the local tier answered with is to be replaced early; nil: it is not, or Redis answered
}

// assess is the state of what was read, as the caller sees it.
func (s *loadSpec[V]) assess(r *readResult[V]) (state, found[V]) {
	if s.judge == nil || r.value == nil {
		return r.state, r.found
	}
	switch s.judge(*r.value) {
	case Serve:
		return fresh, found[V]{value: r.value, how: Hit}
	case Refresh:
		return stale, found[V]{value: r.value, how: Stale}
	case Replace:
	}
	return expired, r.found
}

// decide says what the call does with what was read, as the caller sees it. It reports a stale value that is served,
// and a failed read.
func (r *wanted[V]) decide(g *Guard, s *loadSpec[V], redisErr error) decision[V] {
	got := r.result
	seenAs, answer := s.assess(got)
	d := decision[V]{action: decide(seenAs), found: answer, aged: s.judge == nil && got.aged()}
	switch d.action {
	case doRefresh:
		if s.judge == nil && got.state == stale && !s.isPatient() {
			g.onStale(r.key, got.entry)
		}
	case doBypass:
		d.reason = g.redisError("get", r.key, redisErr)
		g.readFailed(r.valueKey, redisErr)
		if old, ok := s.staleFromLocal(g, r.key); ok {
			d.action, d.found = doServe, old
		}
	case doServe, doRebuild, doLoadApart, doLoadFirst:
	}
	if got.state != unreachable {
		g.journal.RedisDid("get")
	}
	if r.past.Must(got.state != unreachable, got.entry.Stamp) {
		d = decision[V]{action: doLoadApart}
	}
	return d
}

func (f found[V]) result() (v V, how Outcome, err error) {
	if f.value == nil {
		return v, Negative, ErrNotFound
	}
	return *f.value, f.how, nil
}
