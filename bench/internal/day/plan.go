package day

import (
	"math"
	"slices"
	"time"
)

// Plan is a day, or a part of one, and who lives through it.
type Plan struct {
	Seconds   int
	Instances int
	Nodes     int // of a Redis Cluster, and a replica for each
	TTL       time.Duration
	Jitter    float64
	Load      time.Duration // what a load takes, however many there are
	Fleet     float64       // permits of the Limiter; 0: there is none
	Patience  time.Duration // for how long a caller waits
	Kinds     []Kind
	Silent    []Silence
	Lost      []int // seconds at which a node has lost its data
	Parts     int   // of the keyspace, each with a circuit breaker
	Marks     []Mark
}

// Kind is keys that are used alike. The share of each key falls with its rank, to the power of Zipf.
type Kind struct {
	Keys    int
	Zipf    float64
	Gets    func(second int) float64 // a second, of the whole kind
	Writes  func(second int) float64 // invalidations of single keys, by popularity as well
	Cleared []int                    // seconds at which all of them are invalidated
}

// Silence is a time in which a node does not answer.
type Silence struct{ From, To int }

// isSilent reports whether a node does not answer in that second.
func (p *Plan) isSilent(second int) bool {
	return slices.ContainsFunc(p.Silent, func(s Silence) bool { return second >= s.From && second < s.To })
}

// Mark is what the plots name.
type Mark struct {
	At   int
	Name string
}

const (
	minute = 60
	hour   = 60 * minute
)

// BlackFriday is the day of bench/SCALE.md.
func BlackFriday() Plan {
	const deployed, half = 10 * hour, hour / 2 // a deployment takes half an hour
	const opens = 20 * hour
	crowd := func(s int) float64 { // the shop's visitors
		usual := 200_000 - 120_000*math.Cos(2*math.Pi*float64(s-4*hour)/(24*hour))
		return usual * (1 + 2.85*rise(s, opens-minute, minute)*(1-rise(s, opens+2*hour, hour)))
	}
	bought := func(s int) float64 { // of that, the share of what is for sale
		return 0.01 + 0.49*rise(s, opens-minute, minute)*(1-rise(s, opens+2*hour, hour))
	}
	other := func(share float64) func(int) float64 {
		return func(s int) float64 { return share * (1 - bought(s)) * crowd(s) }
	}
	const changed = 0.3 // of all keys and Gets, those of the kind that gets a new Version
	return Plan{
		Seconds: 24 * hour, Instances: 10_000, Nodes: 18, Parts: 6,
		TTL: time.Hour, Jitter: 0.1, Load: 20 * time.Millisecond, Fleet: 200, Patience: 2 * time.Second,
		Kinds: []Kind{
			{Keys: 7_000_000, Zipf: 0.9, Gets: other(1 - changed), Writes: func(int) float64 { return 100 }},
			{Keys: 3_000_000, Zipf: 0.9, Gets: func(s int) float64 { return other(changed)(s) * (1 - rise(s, deployed, half)) }, Writes: func(int) float64 { return 50 }},
			{Keys: 3_000_000, Zipf: 0.9, Gets: func(s int) float64 { return other(changed)(s) * rise(s, deployed, half) }, Writes: func(int) float64 { return 50 }},
			{Keys: 2000, Zipf: 0.4, Gets: func(s int) float64 { return bought(s) * crowd(s) },
				Writes: func(s int) float64 { return 500 * bought(s) }, Cleared: []int{opens}},
		},
		Silent: []Silence{{14 * hour, 14*hour + 15}},
		Lost:   []int{16 * hour},
		Marks: []Mark{
			{3 * hour, "deployment"}, {deployed, "deployment with a new Version"}, {14 * hour, "failover"}, {16 * hour, "a node's data lost"}, {opens, "sale"},
		},
	}
}

// rise goes from 0 to 1 in the time after from.
func rise(second, from, during int) float64 {
	return min(1, max(0, float64(second-from)/float64(during)))
}
