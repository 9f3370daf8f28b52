package tier

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

// A notice can get lost without a broken connection, as between two nodes of a cluster. If it was its source's last, no gap shows. So each
// source repeats its last number twice. In between, a node that stood still may have come back.
const (
	gathering   = 500 * time.Millisecond // of the numbers that are repeated together
	firstRepeat = time.Second            // after that
	lastRepeat  = 3 * time.Second        // after the first one

	// settled is the age that a subscription is past when the last repetition comes of what was made since it stands.
	settled = gathering + firstRepeat + lastRepeat
)

// repetition says which notices a source has made lately. As a message it is "SOURCE LAST= FIRST", which a tier of an older version
// ignores.
type repetition struct {
	source      string
	first, last uint64
}

const repeated = "=" // behind the number

func (r repetition) String() string {
	return r.source + " " + strconv.FormatUint(r.last, 10) + repeated + " " + strconv.FormatUint(r.first, 10)
}

func parseRepetition(s string) (r repetition, ok bool) {
	source, s, _ := strings.Cut(s, " ")
	number, from, _ := strings.Cut(s, " ")
	if number, ok = strings.CutSuffix(number, repeated); !ok || len(source) > maxSource {
		return r, false
	}
	last, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return r, false
	}
	first, err := strconv.ParseUint(from, 10, 64)
	return repetition{strings.Clone(source), first, last}, err == nil && first > 0 && first <= last && last <= maxNumber
}

// IsRepetition reports whether a message repeats a number, and is about no key.
func IsRepetition(payload string) bool {
	_, ok := parseRepetition(payload)
	return ok
}

// Repeat gathers the numbers of notices for a moment, and publishes them twice, after about 1 and 4 seconds, unless ctx ends.
func (n *Notices) Repeat(ctx context.Context, publish func(part int, message string)) {
	if !lifecycle.Sleep(ctx, gathering) {
		return
	}
	all := n.gathered()
	for _, wait := range []time.Duration{firstRepeat, lastRepeat} {
		if !lifecycle.Sleep(ctx, wait) {
			return
		}
		for part, r := range all {
			if r.last > 0 {
				publish(part, r.String())
			}
		}
	}
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
