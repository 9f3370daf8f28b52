package cacheguard

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/failure"
	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/cache/guess"
	"github.com/cacheguard/go/internal/cache/lately"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/run/observe"
	"github.com/cacheguard/go/internal/run/slots"
)

// policy says how entries are kept: a Cache has one by its CacheConfig, the Guard another by its Config.
type policy struct {
	ttl, staleFor, negativeTTL time.Duration
	patience                   time.Duration // of a Get that has a stale value
	jitter, earlyRefresh       float64
	codec                      Codec
	names                      failure.Names
	kind                       *kind // nil: the entries belong to no Cache
	fidelity                   *fidelity.Sampler
	cost                       *guess.Cost // of loads
	slot                       versionSlot
}

// ordinaryPolicy is for entries of no Cache.
func ordinaryPolicy(cfg *Config) policy {
	return policy{
		ttl: cfg.TTL, staleFor: cfg.StaleFor, negativeTTL: cfg.NegativeTTL,
		jitter: cfg.Jitter, earlyRefresh: cfg.EarlyRefresh, codec: cfg.Codec, fidelity: new(fidelity.Sampler), cost: new(guess.Cost),
	}
}

// kindName is the name of the Caches that the entries belong to; empty: none.
func (p *policy) kindName() string {
	if p.kind == nil {
		return ""
	}
	return p.kind.name
}

// kind is what the Caches of one name on a Guard have in common.
type kind struct {
	name      string
	of        reflect.Type // Cache[K, V]
	version   int
	maxLoads  int
	loadSlots *slots.Slots // of maxLoads; nil: no limit but the Guard's
	running   atomic.Int64 // loaders
	tally     observe.Tally
	aliens    guess.Aliens
	unread    report.Throttle // what is logged
	fidelity  fidelity.Sampler
	cost      guess.Cost
	lately    atomic.Pointer[lately.Keys[recent]] // that are to be replaced; nil: none
}

// kinds are the kinds of a Guard, by name.
type kinds struct {
	mu    sync.Mutex
	named map[string]*kind
}

// register returns the kind of the name, and makes it if it is new. The field is the one of CacheConfig in which k
// contradicts an existing kind.
func (ks *kinds) register(k *kind) (registered *kind, isNew bool, field, problem string) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	old, found := ks.named[k.name]
	switch {
	case !found:
		if ks.named == nil {
			ks.named = make(map[string]*kind)
		}
		ks.named[k.name] = k
		return k, true, "", ""
	case old.of != k.of:
		return nil, false, "Name", "the Guard has a " + old.of.String() + " of this name"
	case old.maxLoads != k.maxLoads:
		return nil, false, "MaxLoads", "the Guard has a Cache of this name with another limit"
	case old.version != k.version:
		return nil, false, "Version", "the Guard has a Cache of this name with another Version"
	}
	return old, false, "", ""
}

// byName returns the kind; nil: there is none.
func (ks *kinds) byName(name string) *kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.named[name]
}

// of returns the kind that a key belongs to; nil: none.
func (ks *kinds) of(key string) *kind {
	if name, _, found := strings.Cut(key, ":"); found {
		return ks.byName(name)
	}
	return nil
}

// all are the kinds, by name.
func (ks *kinds) all() []*kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return slices.SortedFunc(maps.Values(ks.named), func(a, b *kind) int { return strings.Compare(a.name, b.name) })
}

// loadSlots returns the slots of the Cache that a load is for; nil: it needs none.
func (p *policy) loadSlots() *slots.Slots {
	if p == nil || p.kind == nil {
		return nil
	}
	return p.kind.loadSlots
}

// countRunning counts loaders that begin, or end.
func (p *policy) countRunning(n int64) {
	if p.kind != nil {
		p.kind.running.Add(n)
	}
}

// logAttrs returns the attributes of an entry in a log record, beside its key.
func (p *policy) logAttrs(args ...any) []any {
	if p.kind == nil {
		return args
	}
	return append([]any{slog.String("cache", p.kind.name)}, args...)
}

// maxVersion bounds CacheConfig.Version: it is a count, and a larger number is probably a date or a hash.
const maxVersion = 1_000_000

// versionSlot is where the values of one version of a program are. The zero one is for values without a version. There are four others
// (see protocol.VersionSlot), so an entry in one may be of a version that is a multiple of four away.
type versionSlot struct {
	version int
	suffix  string // of the keys of values
}

func newVersionSlot(version int) versionSlot {
	if version == 0 {
		return versionSlot{}
	}
	return versionSlot{version: version, suffix: protocol.VersionSlot(version)}
}

// errOfNoKind and errOfAKind say that an entry belongs to somebody else, who has the same key.
var (
	errOfNoKind = errors.New("it was stored by a call that names no Cache")
	errOfAKind  = errors.New("it belongs to a Cache")
)

// check returns why an entry that was found is not one of the policy's; nil if it is.
func (p *policy) check(e *protocol.Entry) error {
	switch {
	case p.kind == nil && !e.Stamp.Kind.IsZero():
		return errOfAKind
	case p.kind != nil && e.Stamp.Kind.IsZero():
		return errOfNoKind
	case p.slot.version != 0 && e.Version != p.slot.version: // without one: nobody else has these keys
		return fmt.Errorf("it was stored under version %d of CacheConfig, and this is %d", e.Version, p.slot.version)
	}
	return nil
}
