package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// Match reports whether a rule is for a command; args[0] is its name in lower case.
type Match func(args []string) bool

// Command matches the commands of a name.
func Command(name string) Match {
	name = strings.ToLower(name)
	return func(args []string) bool { return args[0] == name }
}

// Script matches the commands that run the script with this source, by EVAL or EVALSHA.
func Script(source string) Match {
	sum := sha1.Sum([]byte(source))
	digest := hex.EncodeToString(sum[:])
	return func(args []string) bool {
		if len(args) < 2 {
			return false
		}
		switch args[0] {
		case "eval", "eval_ro":
			return args[1] == source
		case "evalsha", "evalsha_ro":
			return strings.EqualFold(args[1], digest)
		}
		return false
	}
}

// lost is after how long a connection breaks on which a reply was swallowed.
const lost = 3 * time.Second

// Fault is what a rule does to a command.
type Fault string

const (
	// DropReply lets the command run and closes the connection instead of replying.
	DropReply Fault = "drop reply"
	// SwallowReply lets the command run and never replies. Nothing after it arrives on that connection either, as a
	// client would take that for the reply. After 3 s the connection breaks, for clients that wait for longer.
	SwallowReply Fault = "swallow reply"
	// LoseReply lets the command run and drops its reply; what Redis sends after it arrives. Only for commands to whose reply nothing else is
	// matched, as to the confirmation of a subscription.
	LoseReply Fault = "lose reply"
	// CutBefore closes the connection before the command reaches Redis. Commands before it are still replied to.
	CutBefore Fault = "cut before"
	// Hold keeps the command, and all after it on that connection, from Redis until Release, even if the client has
	// gone by then: a command that arrives late.
	Hold Fault = "hold"
	// HoldReply lets the command run and keeps its reply, and all after it on that connection, until Release.
	HoldReply Fault = "hold reply"
)

// ReplyError answers the command with an error, as in "READONLY You can't write", and Redis never sees it.
func ReplyError(message string) Fault { return Fault("-" + message) }

// onReply reports whether the fault is in the reply, so that the command runs.
func (f Fault) onReply() bool {
	return f == DropReply || f == SwallowReply || f == LoseReply || f == HoldReply
}

// Rule is a fault for the commands it matches.
type Rule struct {
	match Match
	fault Fault
	hit   chan struct{} // closed at the first hit
	open  chan struct{} // closed when nothing is held any more

	mu      sync.Mutex
	limit   int // of matches; below 0 for none
	claimed int // matches, those whose fault is still to come included
	hits    int
}

func newRule(match Match, fault Fault) *Rule {
	return &Rule{match: match, fault: fault, limit: -1, hit: make(chan struct{}), open: make(chan struct{})}
}

// Times makes the rule one for the first n matches only, and returns it. Other rules have the matches after those.
func (r *Rule) Times(n int) *Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = n
	return r
}

// Hit is closed once the fault has taken hold for the first time: when a command is held, cut off or answered, or when
// Redis has run it and the fault is in its reply.
func (r *Rule) Hit() <-chan struct{} { return r.hit }

// Count is how often the fault has taken hold.
func (r *Rule) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Release lets go what the rule holds. The rule holds nothing from then on.
func (r *Rule) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !closed(r.open) {
		close(r.open)
	}
}

// Remove ends the rule and lets go what it holds.
func (r *Rule) Remove() {
	r.Times(0)
	r.Release()
}

// claim reports whether the rule is for a command, which is one of its matches then.
func (r *Rule) claim(args []string) bool {
	if !r.match(args) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit >= 0 && r.claimed >= r.limit {
		return false
	}
	r.claimed++
	return true
}

// giveBack undoes a claim.
func (r *Rule) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claimed--
}

// took says that the fault has taken hold.
func (r *Rule) took() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits++
	if r.hits == 1 {
		close(r.hit)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
