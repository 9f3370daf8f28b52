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
	"time"

	"github.com/cacheguard/go/internal/cache/failure"
	"github.com/cacheguard/go/internal/cache/guess"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/slots"
	"github.com/cacheguard/go/internal/watch"
)

// policy says how entries are kept: a Cache has one by its CacheConfig, the Guard another by its Config.
type policy struct {
	ttl, staleFor, negativeTTL time.Duration
	failureTTL                 time.Duration // 0: failures are not remembered
	patience                   time.Duration // of a Get that has a stale value
	jitter, earlyRefresh       float64
	codec                      Codec
	noLocal                    bool // the local tier has no part in it
	names                      failure.Names
	notFound                   error            // the program's error for absence; nil: ErrNotFound, as a loader returns it
	isNotFound                 func(error) bool // of other errors of loaders; nil: none is
	kind                       *kind
}

// ordinaryPolicy is for entries of no Cache.
func ordinaryPolicy(cfg *Config, k *kind) policy {
	return policy{
		ttl: cfg.TTL, staleFor: cfg.StaleFor, negativeTTL: cfg.NegativeTTL, failureTTL: cfg.FailureTTL,
		jitter: cfg.Jitter, earlyRefresh: cfg.EarlyRefresh, codec: cfg.Codec, kind: k,
		names: failure.NewNames(ownCauses, nil, cfg.ErrorCodec), notFound: cfg.NotFound,
	}
}

// isNamed reports whether the entries belong to a Cache.
func (p *policy) isNamed() bool { return p.kind.name != "" }

// kind is what the Caches of one name on a Guard have in common. The one without a name is of the entries of no Cache.
type kind struct {
	name      string
	of        reflect.Type // Cache[K, V]
	version   int
	slot      string // see protocol.VersionSlot: there are four, so an entry in one may be of another version
	maxLoads  int
	loadSlots *slots.Slots // of maxLoads; nil: no limit but the Guard's
	aliens    guess.Aliens
	watched   *watch.Kind
	cost      guess.Cost  // of loads
	counts    *kindCounts // nil: nothing is counted
}

// kinds are the kinds of a Guard, by name.
type kinds struct {
	ordinary kind   // without a name
	parts    policy // of entries of a Source with Part: the ordinary one, and nothing of them is stale

	mu    sync.Mutex
	named map[string]*kind
}

// register returns the kind of the name, and makes it if it is new, unless k contradicts an existing kind.
func (ks *kinds) register(k *kind, p *config.Problems) (registered *kind, isNew bool) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	old, found := ks.named[k.name]
	switch {
	case !found:
		if ks.named == nil {
			ks.named = make(map[string]*kind)
		}
		ks.named[k.name] = k
		return k, true
	case old.of != k.of:
		p.Add("Name", "%q: the Guard has a %v of this name", k.name, old.of)
	case old.maxLoads != k.maxLoads:
		p.Add("MaxLoads", "%q: the Guard has a Cache of this name with another limit", k.name)
	case old.version != k.version:
		p.Add("Version", "%q: the Guard has a Cache of this name with another Version", k.name)
	}
	return old, false
}

// byName returns the kind; nil: there is none.
func (ks *kinds) byName(name string) *kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.named[name]
}

// of returns the kind that a key belongs to.
func (ks *kinds) of(key string) *kind {
	if name, _, found := strings.Cut(key, ":"); found {
		if k := ks.byName(name); k != nil {
			return k
		}
	}
	return &ks.ordinary
}

// all are the kinds, by name.
func (ks *kinds) all() []*kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	all := slices.AppendSeq([]*kind{&ks.ordinary}, maps.Values(ks.named))
	return slices.SortedFunc(slices.Values(all), func(a, b *kind) int { return strings.Compare(a.name, b.name) })
}

// logAttrs returns the attributes of an entry in a log record, beside its key; cache is the Prefix already.
func (p *policy) logAttrs() []any {
	if !p.isNamed() {
		return nil
	}
	return []any{slog.String("kind", p.kind.name)}
}

// maxVersion bounds CacheConfig.Version: it is a count, and a larger number is probably a date or a hash.
const maxVersion = 1_000_000

// errOfNoKind and errOfAKind say that an entry belongs to somebody else, who has the same key.
var (
	errOfNoKind = errors.New("it was stored by Get, Fetch or GetMany of the Guard, with a key of the Cache, whose methods are to be called")
	errOfAKind  = errors.New("it belongs to a Cache")
)

// check returns why an entry that was found is not one of the policy's; nil if it is.
func (p *policy) check(e *protocol.Entry) error {
	switch {
	case !p.isNamed() && !e.Stamp.Kind.IsZero():
		return errOfAKind
	case p.isNamed() && e.Stamp.Kind.IsZero():
		return errOfNoKind
	case p.kind.version != 0 && e.Version != p.kind.version: // without one: nobody else has these keys
		return fmt.Errorf("it was stored under version %d of CacheConfig, and this is %d", e.Version, p.kind.version)
	}
	return nil
}
