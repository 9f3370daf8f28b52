package tier

import (
	"context"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

// A notice can get lost without a broken connection, as between two nodes of a cluster. If it was its source's last, no
// gap shows. So each source repeats its last number twice. In between, a node that stood still may have come back. A
// number that Redis refuses is repeated until it does not: the notice itself was not published either.
const (
	gathering   = 500 * time.Millisecond // of the numbers that are repeated together
	firstRepeat = time.Second            // after that
	lastRepeat  = 3 * time.Second        // after the first one

	// settled is the age that a subscription is past when the last repetition comes of what was made since it stands.
	settled = gathering + firstRepeat + lastRepeat
)

// repetition says which notices a source has made lately. As a message it is "SOURCE LAST= FIRST", which a tier of an
// older version ignores.
type repetition struct {
	source      string
	first, last uint64
}

const repeated = "=" // behind the number

func (r repetition) String() string {
	return write(r.source, r.last, repeated, strconv.FormatUint(r.first, 10))
}

func parseRepetition(s string) (r repetition, ok bool) {
	source, last, mark, rest, ok := read(s)
	first, err := strconv.ParseUint(rest, 10, 64)
	return repetition{source, first, last}, ok && mark == repeated && err == nil && first > 0 && first <= last
}

// IsRepetition reports whether a message repeats a number, and is about no key.
func IsRepetition(payload string) bool {
	_, ok := parseRepetition(payload)
	return ok
}

// Repeat gathers the numbers of notices for a moment, and publishes them twice, after about 1 and 4 seconds, and again
// if they are refused, unless ctx ends. Unanswered: nobody knows, and what was refused before still is.
func (n *Notices) Repeat(ctx context.Context, publish func(part int, message string) (refused, answered bool)) {
	for again := true; again && lifecycle.Sleep(ctx, gathering); again = n.again() {
		all := n.gathered()
		for _, wait := range []time.Duration{firstRepeat, lastRepeat} {
			if !lifecycle.Sleep(ctx, wait) {
				return
			}
			for part, r := range all {
				if r.last == 0 {
					continue
				}
				if refused, answered := publish(part, r.String()); answered {
					n.said(part, r, refused)
				}
			}
		}
	}
}

// said notes whether a repetition was refused.
func (n *Notices) said(part int, r repetition, refused bool) {
	n.mu.Lock()
	p, changed := &n.parts[part], ""
	switch was := p.refused; {
	case refused && (was == 0 || r.first < was):
		p.refused, changed = r.first, n.Channel
	case refused || was == 0 || r.first > was:
		n.mu.Unlock()
		return
	default:
		p.refused = 0
	}
	n.mu.Unlock()
	if n.Changed != nil {
		n.Changed(changed)
	}
}

// again has what was refused gathered again, and reports whether the caller is to do it, as nobody else will.
func (n *Notices) again() (mine bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.parts {
		if p := &n.parts[i]; p.refused > 0 {
			p.gathered, mine = min(p.gathered, p.refused-1), n.repeating == 1
		}
	}
	if !mine {
		n.repeating--
	}
	return mine
}

// Refused is how many notices Redis has neither published nor let this process repeat.
func (n *Notices) Refused() (refused int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.parts {
		if p := &n.parts[i]; p.refused > 0 {
			refused += int(p.last - p.refused + 1)
		}
	}
	return refused
}

// gathered returns, for each part, the numbers that were made since it was called last.
func (n *Notices) gathered() []repetition {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gathers = false
	all := make([]repetition, len(n.parts))
	for i := range n.parts {
		if p := &n.parts[i]; p.last > p.gathered {
			all[i] = repetition{n.source(i), p.gathered + 1, p.last}
			p.gathered = p.last
		}
	}
	return all
}
