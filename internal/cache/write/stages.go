package write

import (
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

// stage is what of a call ends at once.
type stage struct {
	ends  []request
	after []target // what ends later
}

// stages sorts what a call ends: what may be on several levels ends in each.
func (l *Levels) stages(all []request) (stages []stage) {
	for level := range l.Top + 1 {
		var s stage
		for _, r := range all {
			from, to := l.span(r.target)
			if from <= level && level <= to {
				r.again = level < to
				s.ends = append(s.ends, r)
			}
			if level < to {
				s.after = append(s.after, r.target)
			}
		}
		if s.ends != nil {
			stages = append(stages, s)
		}
	}
	return stages
}
