package cacheguard

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
}

func (f found[V]) result() (v V, how Outcome, err error) {
	if f.value == nil {
		return v, Negative, ErrNotFound
	}
	return *f.value, f.how, nil
}
