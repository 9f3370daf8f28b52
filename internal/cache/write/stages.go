package write

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cacheguard/go/internal/cache/epoch"
)

// Levels say how far from the source the values of each kind are, by its name: one above the highest of the kinds that
// they are made of. Keys of other kinds are on the level of the empty name. Nil: nothing is known to be made of anything.
//
// What a call names ends in stages, by level: as long as something of it can be read that ends later, others are made of
// that, and stored. So what is made of something ends when Redis has acknowledged the end of that.
type Levels struct {
	Of  map[string]int
	Top int
}

// span is on which levels the target may have values: tags may be on all.
func (l *Levels) span(t target) (from, to int) {
	name, _, named := strings.Cut(t.name, ":")
	if t.isEpoch() {
		name, named = epoch.Shown(t.name), true
		if t.name != epoch.OfKind(name) {
			return 0, l.Top
		}
	}
	if level, known := l.Of[name]; known && named {
		return level, level
	}
	return l.Of[""], l.Of[""]
}

func (l *Levels) from(t target) int { from, _ := l.span(t); return from }
func (l *Levels) to(t target) int   { _, to := l.span(t); return to }

// stage is what of a call ends at once.
type stage struct {
	ends  []request
	after []target // what ends later
}

// stages sorts what a call ends. Where there are tags, each level has a stage, and they end in all of them.
func (l *Levels) stages(all []request) (stages []stage) {
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(l.to(a.target), l.to(b.target)) })
	tags := slices.ContainsFunc(all, func(r request) bool { return l.from(r.target) < l.to(r.target) })
	for level := 0; len(all) > 0; level++ {
		n := slices.IndexFunc(all, func(r request) bool { return l.to(r.target) > level })
		if n < 0 {
			n = len(all)
		}
		s := stage{ends: slices.Clone(all[:n])}
		for _, r := range all[n:] {
			s.after = append(s.after, r.target)
			if l.from(r.target) < l.to(r.target) {
				s.ends = append(s.ends, request{target: r.target, again: true})
			}
		}
		if all = all[n:]; n > 0 || tags {
			stages = append(stages, s)
		}
	}
	return stages
}
