package admin

import (
	"time"
)

const (
	// pause is how long there is between two samples at least.
	pause = 2 * time.Second
	// kept is how many samples there are.
	kept = 90
)

// The answers that count as the cache's, and all answers: the first of the words of a Guard's answers, as it counts them.
const (
	served = 4 // hit, local, stale, negative
	asked  = 8 // and loaded, shared, bypassed, error
)

// sample is what happened in a span of time.
type sample struct {
	at             time.Time // its end
	seconds        float64
	asked, served  float64 // answers
	loads, loading float64 // runs of loaders, and how many seconds those took
	lately         lately
}

// lately is what should not happen.
type lately struct {
	Takeovers  uint64 `json:"takeovers"`
	Damaged    uint64 `json:"damaged"`
	Unstorable uint64 `json:"unstorable"`
}

// series are the samples of one Cache.
type series struct {
	before tallied  // at the last sample
	ring   []sample // the oldest first
}

// add takes a sample of what happened since the last one.
func (s *series) add(now tallied, at time.Time, passed time.Duration) {
	var one sample
	one.at, one.seconds = at, passed.Seconds()
	for word := range asked {
		n := float64(now.answers[word] - s.before.answers[word])
		one.asked += n
		if word < served {
			one.served += n
		}
	}
	one.loads = float64(now.loads - s.before.loads)
	one.loading = float64(now.nanos-s.before.nanos) / 1e9
	one.lately = lately{
		now.takeovers.times - s.before.takeovers.times, now.damaged.times - s.before.damaged.times, now.unstorable.times - s.before.unstorable.times,
	}
	if len(s.ring) == kept {
		s.ring = append(s.ring[:0], s.ring[1:]...)
	}
	s.ring, s.before = append(s.ring, one), now
}

// last is the last sample.
func (s *series) last() sample {
	if len(s.ring) == 0 {
		return sample{}
	}
	return s.ring[len(s.ring)-1]
}

// lately is what happened in the samples that are not too old, and how many seconds ago each last did. What is over for longer than recently is not shown.
func (s *series) lately(t *tallied, now time.Time) (all lately, ago map[string]float64) {
	for _, one := range s.ring {
		if now.Sub(one.at) < recently {
			all.Takeovers += one.lately.Takeovers
			all.Damaged += one.lately.Damaged
			all.Unstorable += one.lately.Unstorable
		}
	}
	ago = make(map[string]float64)
	for _, what := range []struct {
		name  string
		of    happened
		count *uint64
	}{
		{"takeovers", t.takeovers, &all.Takeovers}, {"damaged", t.damaged, &all.Damaged}, {"unstorable", t.unstorable, &all.Unstorable},
	} {
		passed := now.Sub(time.Unix(0, what.of.last))
		if what.of.times == 0 || passed >= recently {
			*what.count = 0
			continue
		}
		*what.count, ago[what.name] = max(1, *what.count), passed.Seconds() // at least that one, of which there is no sample yet
	}
	return all, ago
}

// ratios are the hit ratios of the samples; below 0: nobody asked.
func (s *series) ratios() []float64 {
	all := make([]float64, 0, len(s.ring))
	for _, one := range s.ring {
		all = append(all, ratio(one.served, one.asked))
	}
	return all
}

// ratio is the share; below 0: of nothing.
func ratio(part, all float64) float64 {
	if all <= 0 {
		return -1
	}
	return part / all
}
