package cacheguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cacheguard/go/internal/cache/failure"
	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/slots"
)

// CacheConfig describes a Cache. Name and Load are required. Of what Config has too, and describes, 0 means the Guard's
// setting, and -1 switches the feature off where the field says so.
type CacheConfig[K comparable, V any] struct {
	// What every Cache has.
	//
	// Name names the kind of thing in keys, metrics and logs: key 42 of the Cache product is the Guard's key
	// product:42. At most 64 bytes, without colons, braces, backslashes, spaces or control characters. Caches of one
	// Name have the same K, V, MaxLoads and Version.
	Name string

	// Load reads a thing from the source.
	Load func(context.Context, K) (V, error)

	// LoadMany reads several things for GetMany. Those that it does not return, by the text of their Key, do not exist.
	// Default: Load for each, as many at a time as MaxLoads allows.
	LoadMany func(context.Context, []K) (map[K]V, error)

	// What absence and errors are.
	//
	// NotFound is Load's error for absence, such as sql.ErrNoRows, beside ErrNotFound. Callers get exactly NotFound or,
	// if it has a method Of(key string) error, what that returns. Default: the Guard's, or ErrNotFound.
	NotFound error

	// IsNotFound reports whether an error of Load means absence: see docs/plugging-in.md. Callers get NotFound.
	IsNotFound func(error) bool

	// Errors are errors that callers branch on, under names that travel: the *LoadError on other instances matches
	// them. Do not reuse a name. At most 64 bytes, without control characters, and 8 for one failure.
	Errors map[string]error

	// ErrorCodec lets errors travel whose type or code matters: docs/plugging-in.md.
	ErrorCodec ErrorCodec

	// What can be invalidated together.
	//
	// Tags returns tags of a thing that was loaded or put, beside those of SetTags; see there.
	Tags func(K, V) []string

	// AbsentTags returns the tags of remembered absence, beside those of SetTags: what an insert invalidates.
	AbsentTags func(K) []string

	// How long things live; see Config.
	//
	// TTL is how long an entry is fresh. -1: values are not stored.
	TTL time.Duration

	// StaleFor is how long an entry is served after its TTL. -1: off.
	StaleFor time.Duration

	// Patience is how long a Get that finds a stale value waits for a fresh one, at least a millisecond; if the load
	// fails, Redis does not answer, or no slot is to spare, it gets the stale one at once. It needs StaleFor. GetMany
	// does not wait. Default: 0, as -1.
	Patience time.Duration

	// NegativeTTL is how long absence is remembered, at most TTL by default. -1: not at all.
	NegativeTTL time.Duration

	// FailureTTL bounds how long another error is remembered. -1: not at all.
	FailureTTL time.Duration

	// Jitter shortens TTLs at random. -1: off.
	Jitter float64

	// EarlyRefresh replaces entries early. -1: off.
	EarlyRefresh float64

	// Where things are, and how they are loaded.
	//
	// NoLocal keeps this Cache out of Config.Local: see docs/revocation.md.
	NoLocal bool

	// MaxLoads is how many loaders of this kind run at once, within the Guard's MaxLoads. One that a loader asks for
	// does not count. Default: no such limit.
	MaxLoads int

	// Version is the version of V as it is stored: add one when V changes, and never reuse a number:
	// docs/production.md. At most 1,000,000. Default: 0, none.
	Version int

	// Codec encodes values other than []byte and string.
	Codec Codec

	// Clone copies what callers may share, of the local tier or of a load. Load gives away what it returns. Default:
	// none, values are read-only.
	Clone func(V) V

	// Key returns the text of a key, which may not be empty; keys of one text are the same thing. Default: the value of
	// an integer or a string, or of a type of one, whatever methods it has; else MarshalText or String. Pointers,
	// interfaces, and structs without such a method have none.
	Key func(K) string
}

const maxCacheName = 64

// check returns one error that names every field that is out of range.
func (c *CacheConfig[K, V]) check() error {
	var p config.Problems
	p.Of = "CacheConfig"
	switch {
	case c.Name == "":
		p.Add("Name", "is empty")
	case len(c.Name) > maxCacheName:
		p.Add("Name", "%q is longer than %d bytes", c.Name, maxCacheName)
	case strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`:{}\`, r) }):
		p.Add("Name", "%q contains a colon, a brace, a backslash, a space or a control character", c.Name)
	case !utf8.ValidString(c.Name):
		p.Add("Name", "%q is not UTF-8", c.Name)
	}
	if c.Load == nil {
		p.Add("Load", "is nil")
	}
	for name, err := range c.Errors {
		switch {
		case name == "" || len(name) > failure.MaxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) || !utf8.ValidString(name):
			p.Add("Errors", "the name %q is empty, longer than %d bytes, has control characters, or is not UTF-8", name, failure.MaxName)
		case err == nil:
			p.Add("Errors", "the error of %q is nil", name)
		}
	}
	p.Duration("Patience", c.Patience)
	checkLives(&p, c.TTL, c.StaleFor, c.NegativeTTL, c.FailureTTL)
	checkShares(p.Add, c.Jitter, c.EarlyRefresh)
	if c.MaxLoads < off {
		p.Add("MaxLoads", "%d is negative (use -1 for no limit but the Guard's)", c.MaxLoads)
	}
	if c.Version < 0 || c.Version > maxVersion {
		p.Add("Version", "%d is not between 0 (none) and %d", c.Version, maxVersion)
	}
	return p.Err()
}

// checkWithin looks at what a setting needs of the Guard's.
func (c *CacheConfig[K, V]) checkWithin(g *Guard) error {
	p := config.Problems{Of: "CacheConfig"}
	if c.Patience > 0 && c.policy(g).staleFor == 0 {
		p.Add("Patience", "it needs StaleFor, which neither CacheConfig nor Config has")
	}
	return p.Err()
}

// policy returns the Cache's policy, with the Guard's settings where a field has none.
func (c *CacheConfig[K, V]) policy(g *Guard) policy {
	p := g.ordinary
	override := func(to *time.Duration, d time.Duration) {
		if d != 0 {
			*to = min(max(d, 0), longest)
		}
	}
	override(&p.ttl, c.TTL)
	override(&p.staleFor, c.StaleFor)
	override(&p.patience, c.Patience)
	p.noLocal = c.NoLocal
	p.negativeTTL = min(p.negativeTTL, p.ttl)
	override(&p.negativeTTL, c.NegativeTTL)
	override(&p.failureTTL, c.FailureTTL)
	if c.Jitter != 0 {
		p.jitter = max(c.Jitter, 0)
	}
	if c.EarlyRefresh != 0 {
		p.earlyRefresh = max(c.EarlyRefresh, 0)
	}
	if c.Codec != nil {
		p.codec = c.Codec
	}
	p.names = failure.NewNames(ownCauses, c.Errors, cmp.Or(c.ErrorCodec, g.cfg.ErrorCodec))
	p.notFound, p.isNotFound = cmp.Or(c.NotFound, g.cfg.NotFound, ErrNotFound), c.IsNotFound
	return p
}

// encodable refuses values that the default Codec never brings back.
func (c *CacheConfig[K, V]) encodable(g *Guard) error {
	if c.Codec != nil || g.cfg.Codec != Codec(jsonCodec{}) {
		return nil
	}
	if path, why := fidelity.Impossible(reflect.TypeFor[V]()); why != "" {
		return fmt.Errorf("CacheConfig.Codec: encoding/json never brings back a %v: %s: %s", reflect.TypeFor[V](), path, why)
	}
	return nil
}

// kind registers the Cache's kind with the Guard.
func (c *CacheConfig[K, V]) kind(g *Guard) (*kind, error) {
	k := &kind{
		name: c.Name, of: reflect.TypeFor[Cache[K, V]](), version: c.Version, slot: protocol.VersionSlot(c.Version), maxLoads: max(c.MaxLoads, 0),
		watched: g.journal.Kind(c.Name),
	}
	if k.maxLoads > 0 {
		k.loadSlots = slots.New(k.maxLoads)
	}
	k.countAll(g)
	p := config.Problems{Of: "CacheConfig"}
	k, isNew := g.kinds.register(k, &p)
	if isNew {
		g.observers.tell(context.Background(), Event{What: EventCache, Kind: c.Name})
	}
	return k, p.Err()
}

var errNilCache = errors.New("cacheguard: cache is nil (did NewCache return an error?)")
