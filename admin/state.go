package admin

import (
	"sync"
	"time"

	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	// mostLocks is how many locks are shown.
	mostLocks = 100

	// longestShown is how many bytes of a name are shown.
	longestShown = 512

	// recently is how long what may be over is shown as what is wrong now: an error of Redis, an entry that could not be decoded.
	recently = observe.Recently

	// mistaken is how long a mistake in a program is shown, which is there until somebody deploys, however seldom it shows: a name that was invalidated and
	// that no load has, a row whose keys are not known. It is said how long ago the last was. Stats counts them for longer.
	mistaken = 10 * time.Minute

	// standing is how long an intent may stand before that is shown as what is wrong: most transactions take less.
	standing = 3 * time.Second
)

// state is what the page shows. Durations are in seconds, rates per second, ratios from 0 to 1, or -1 of nothing.
type state struct {
	Time    time.Time     `json:"time"`
	Over    float64       `json:"over"` // what rates are an average of
	Guards  []guardState  `json:"guards"`
	Lockers []lockerState `json:"lockers"`
	Pages   []pagesState  `json:"pages"`
	Feeds   []feedState   `json:"feeds"`
	Reports []reportState `json:"reports"`
}

type guardState struct {
	Prefix    string             `json:"prefix"`
	Instance  string             `json:"instance"`
	Redis     string             `json:"redis"`             // where it is, for people: a look-up of what somebody has just written proves which it is
	Troubles  map[string]float64 `json:"troubles"`          // what is wrong, and for how long; refused: how long ago
	Order     []string           `json:"order"`             // their names, causes first
	Cause     string             `json:"cause,omitempty"`   // which of them brings others; empty: none
	Brought   []string           `json:"brought,omitempty"` // which ones, if they are there
	Happened  map[string]uint64  `json:"happened"`          // how often each event did, so far, as the log names it
	Refused   string             `json:"refused"`           // the last error that Redis answered with
	DeafAs    string             `json:"deaf_as,omitempty"` // why messages do not arrive
	Bypassed  string             `json:"bypassed"`          // on which instances the cache is turned off, and until when; empty: on none
	Loading   int                `json:"loading"`
	MaxLoads  int                `json:"max_loads"` // 0: no limit
	Queued    int                `json:"queued"`
	Waiting   int                `json:"waiting"`
	Breakers  int                `json:"breakers"`
	Open      int                `json:"breakers_open"`
	SlowParts int                `json:"slow_parts"`
	Hedged    uint64             `json:"hedged"` // loads beside Redis

	Pending   int               `json:"pending"`          // invalidations
	Untold    int               `json:"refused_messages"` // about others, to local tiers
	Intents   int               `json:"intents"`          // of this process's transactions and updates that are not done
	Oldest    float64           `json:"oldest_intent"`    // for how long the oldest has stood
	Stands    string            `json:"oldest_intent_of"` // what it is, with its keys
	Warming   int               `json:"warming"`          // calls of Warm under way
	Refreshes uint64            `json:"failed_refreshes"`
	Tags      []string          `json:"tags"`         // the kinds that loads have had; null: not known
	Keys      []string          `json:"keys"`         // the same, of keys of no Cache
	NoTags    map[string]uint64 `json:"unknown_tags"` // kinds that no load has had: how often they were invalidated, if they were lately
	NoKeys    map[string]uint64 `json:"unknown_keys"` // the same, and no Cache has

	NoTagsAgo map[string]float64 `json:"unknown_tags_ago"` // how long ago that was the last time
	NoKeysAgo map[string]float64 `json:"unknown_keys_ago"`

	Local      int           `json:"local_entries"`
	LocalBytes uint64        `json:"local_bytes"`
	Evictions  uint64        `json:"local_evictions"`
	Read       uint64        `json:"read_bytes"`
	Written    uint64        `json:"written_bytes"`
	Numbers    []numberState `json:"numbers"` // all of Stats
	Caches     []cacheState  `json:"caches"`
	Running    []loadState   `json:"running"` // loads that run, the longest first
	Slowest    []loadState   `json:"slowest"` // of the last minutes
	Hot        []hotState    `json:"hot"`
}

// numberState is a cacheguard.Number.
type numberState struct {
	Name  string  `json:"name"`
	Help  string  `json:"help"`
	Value float64 `json:"value"`
}

type cacheState struct {
	Name       string            `json:"name"` // empty: what belongs to no Cache
	Rate       float64           `json:"rate"`
	Ratio      float64           `json:"ratio"` // now
	Ratios     []float64         `json:"ratios"`
	AllRatio   float64           `json:"all_ratio"` // since the Handler was made
	Loads      float64           `json:"loads"`
	LoadTook   float64           `json:"load_took"` // on average; -1: none ended
	Answers    map[string]uint64 `json:"answers"`   // so far
	Failed     uint64            `json:"failed"`    // loads, so far, as what follows
	Takeovers  uint64            `json:"takeovers"`
	LeasesLost uint64            `json:"leases_lost"`
	Damaged    uint64            `json:"damaged"`
	Unstorable uint64            `json:"unstorable"`
	Failing    *failingState     `json:"failing,omitempty"` // nil: few loads fail
	Lately     lately            `json:"lately"`            // in the last half a minute, or since the look before

	LatelyAgo map[string]float64 `json:"lately_ago"` // how long ago the last of each was
}

// failingState is observe.Failing.
type failingState struct {
	For    float64 `json:"for"`
	Loads  uint64  `json:"loads"`
	Failed uint64  `json:"failed"`
	Last   string  `json:"last"`
}

type loadState struct {
	Key    string  `json:"key"`
	Cut    bool    `json:"cut"` // the key is longer, or not text
	Keys   int     `json:"keys"`
	Took   float64 `json:"took"`
	Began  string  `json:"began"`
	Failed bool    `json:"failed"`
}

type hotState struct {
	Key  string  `json:"key"`
	Cut  bool    `json:"cut"`
	Rate float64 `json:"rate"`
}

type lockerState struct {
	Kind      string      `json:"kind"`
	Prefix    string      `json:"prefix"`
	Instance  string      `json:"instance"`
	Permits   int         `json:"permits"` // of a semaphore; 0: another kind
	Servers   int         `json:"servers"` // of a quorum; 0: another kind
	Deaf      bool        `json:"deaf"`    // messages do not arrive
	Revocable bool        `json:"revocable"`
	Held      int         `json:"held"`  // how many there are
	Locks     []lockState `json:"locks"` // those held for longest
}

type lockState struct {
	Name  string  `json:"name"`
	Cut   bool    `json:"cut"` // the name is longer, or not text
	Mode  string  `json:"mode"`
	Fence int64   `json:"fence"` // 0: a semaphore has none
	Token string  `json:"token"`
	For   float64 `json:"for"`
	Left  float64 `json:"left"`
}

type pagesState struct {
	Name    string            `json:"name"`
	Space   string            `json:"space"`
	Answers map[string]uint64 `json:"answers"`
	Ratio   float64           `json:"ratio"` // of hits and stale pages among all requests that a cache may answer, in the last minutes

	AllRatio  float64           `json:"all_ratio"`          // the same, since the Handler was made
	NotStored map[string]uint64 `json:"not_stored"`         // how many of those passed a cache might answer, but for their responses: by what is wrong with these
	Failing   *pagesShare       `json:"failing,omitempty"`  // that get no page; nil: few
	Faulty    *pagesShare       `json:"faulty,omitempty"`   // that get a stored error; nil: few
	Uncached  *pagesShare       `json:"uncached,omitempty"` // whose responses cannot be stored; nil: not nearly all
}

// pagesShare is a share of the requests of the last minutes.
type pagesShare struct {
	Requests uint64 `json:"requests"`
	Of       uint64 `json:"of"`
	Why      string `json:"why,omitempty"` // most of these, as Cache-Status says it; of failing and faulty ones, the path of the last
}

// shown is what is shown at the moment, for all who look.
type shown struct {
	mu      sync.Mutex
	series  map[seriesOf]*series
	sampled time.Time
	over    time.Duration
	made    time.Time
	text    []byte
}

// seriesOf says whose series it is.
type seriesOf struct {
	guard int
	name  string
}
