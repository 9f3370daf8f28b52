package cacheguard

import (
	"cmp"
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch/inspect"
	"github.com/cacheguard/go/internal/watch/selfcheck"
)

// EntryState says what Redis has for a key.
type EntryState string

// The states of an entry.
const (
	EntryMissing EntryState = "missing" // nothing
	EntryFresh   EntryState = "fresh"   // a value within its TTL
	EntryStale   EntryState = "stale"   // a value past its TTL
	EntryAbsent  EntryState = "absent"  // remembered absence
	EntryRevoked EntryState = "revoked" // invalidated by InvalidateTags or InvalidateAll
	EntryDamaged EntryState = "damaged" // no entry of this version, truncated or changed (in its first 64 KiB)
)

// Inspection is the state of a key, in Redis and on this instance, without the value. Durations are by the clock of the
// key's server.
type Inspection struct {
	Key   string
	State EntryState

	// Of the entry, unless State is missing or damaged.
	Age      time.Duration // since it was stored
	FreshFor time.Duration // until its TTL ends, or 0
	KeptFor  time.Duration // until Redis drops it
	LoadTook time.Duration // how long it took to load
	Kind     string        // bytes (a []byte or string), coded (by the Codec), or absence
	Tags     []string      // by which it can be invalidated

	// TagVersions are the epochs of the Tags when the entry was loaded, in hexadecimal.
	TagVersions []string

	Size   int    // of what Redis has for the key, in bytes
	Damage string // why State is damaged

	Load    *Holder  // who loads the key; nil: nobody
	Waiting int      // other instances that wait for it
	Writers []Holder // instances in an Update of the key
	Blocked int      // instances that wait for that Update
	Intents []Holder // with an intent on the key, up to a hundred; For is by their clocks
	Failure *Failure // of the last load; nil: none, or forgotten

	// Version is the CacheConfig.Version of the entry; 0: none, or no entry. Writers, Blocked and Intents are of all
	// versions. Versions has an Inspection for each other version.
	Version  int
	Versions []Inspection

	Here Here
}

// Holder is an instance that loads or updates a key.
type Holder struct {
	Instance string        // its Config.Instance; empty: not known
	For      time.Duration // since it began
	Left     time.Duration // until others take it for dead
}

// Failure is what Redis remembers of loads that failed.
type Failure struct {
	Message string        // of the last error (see Config.RedactError); empty once Left is 0
	InARow  int           // loads that failed since one succeeded
	Left    time.Duration // how long Get returns the error
}

// Here is what the instance that was asked knows of a key.
type Here struct {
	InTier   bool // the local tier has it
	Loads    int  // loads under way, and waits for other instances'
	Callers  int  // calls that wait for these
	Pending  bool // an invalidation is still to be sent
	Bypassed bool
	Cut      bool // the circuit breaker is open
}

// Inspect shows the state of a key. When Redis fails, the error is a *RedisError, and when ctx
// ends, that of ctx: the Inspection then has only Here.
func (g *Guard) Inspect(ctx context.Context, key string) (Inspection, error) {
	if err := g.begin(); err != nil {
		return Inspection{}, err
	}
	defer g.life.Done()
	if key == "" {
		return Inspection{}, errEmptyKey
	}
	i := Inspection{Key: key, State: EntryMissing, Here: g.inspectHere(key)}
	err := i.inspectVersionSlots(ctx, g)
	return i, inspected(ctx, key, err)
}

// HasTag reports whether Redis may have an entry with the tag: if not, it may be mistyped. Errors are as Inspect's.
func (g *Guard) HasTag(ctx context.Context, tag string) (bool, error) {
	if err := g.begin(); err != nil {
		return false, err
	}
	defer g.life.Done()
	has, err := g.epochs.Known(ctx, epoch.OfTag(tag))
	return has, inspected(ctx, tag, err)
}

// inspected is the error of an inspection.
func inspected(ctx context.Context, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx, "inspect", name)
	}
	return &RedisError{Op: "inspect", Key: name, Err: err}
}

func (g *Guard) inspectHere(key string) Here {
	h := Here{
		Pending: g.writes.IsPending(key), Bypassed: g.off.Bypassed(), Cut: g.breakers.Of(g.keys.ValueKey(key)).IsOpen(),
		InTier: g.local != nil && g.local.Has(key),
	}
	runs := g.flights.Count(func(k flightKey) bool { return k.key == key })
	h.Loads, h.Callers = runs.Running, runs.Callers
	return h
}

// confirm checks whether the epochs that the entry was made under are the current ones.
func (i *Inspection) confirm(ctx context.Context, g *Guard, stamp protocol.Stamp) error {
	if stamp.Prefix.IsZero() {
		return nil // there is no entry
	}
	kind := ""
	if !stamp.Kind.IsZero() {
		kind, _, _ = strings.Cut(i.Key, ":")
	}
	epochs := g.epochs.Begin(i.Key, g.keys.ValueKey(i.Key), kind, nil)
	holds, redisErr, err := epochs.Check(ctx, stamp)
	if err = cmp.Or(err, redisErr); err == nil && !holds {
		i.State, i.FreshFor = EntryRevoked, 0
	}
	return err
}

// readEntry fills in the state of the value, and returns its stamp.
func (i *Inspection) readEntry(in *inspect.Reply) (none protocol.Stamp) {
	if in.Value == nil {
		return none
	}
	i.Size = in.Size
	e, err := in.Entry(i.Key)
	if err != nil {
		i.State, i.Damage = EntryDamaged, err.Error()
		return none
	}
	i.Age, i.KeptFor, i.LoadTook = max(in.Now.Sub(e.Written), 0), max(in.Expires, 0), e.Took
	i.Kind = map[protocol.Kind]string{protocol.Raw: "bytes", protocol.Coded: "coded", protocol.Absent: "absence"}[e.Kind]
	i.FreshFor = i.KeptFor
	if e.Fresh > 0 {
		i.FreshFor = max(e.Fresh-i.Age, 0)
	}
	switch {
	case e.Kind == protocol.Absent:
		i.State = EntryAbsent
	case i.FreshFor > 0:
		i.State = EntryFresh
	default:
		i.State = EntryStale
	}
	i.Version = e.Version
	for tag, at := range e.Stamp.Tags.All() {
		i.Tags, i.TagVersions = append(i.Tags, string(tag)), append(i.TagVersions, hex.EncodeToString(at[:]))
	}
	return e.Stamp
}

// readHolders fills in the instances that load and write, and the last failure.
func (i *Inspection) readHolders(in *inspect.Reply) {
	i.Load = (*Holder)(in.Load)
	for _, w := range in.Writers {
		i.Writers = append(i.Writers, Holder(w))
	}
	for _, intent := range in.Intents {
		i.Intents = append(i.Intents, Holder(intent))
	}
	i.Waiting, i.Blocked = in.Waiting, in.Blocked
	if in.Failures > 0 {
		i.Failure = &Failure{Message: in.Failure, InARow: in.Failures, Left: in.Retry}
	}
}

// inspectVersionSlots returns what Redis has for the key, without a version and in each version slot, in one request.
func (i *Inspection) inspectVersionSlots(ctx context.Context, g *Guard) error {
	var calls []*script.Call
	for _, valueKey := range protocol.AllVersionSlots(g.keys.ValueKey(i.Key)) {
		calls = append(calls, g.keys.Inspect(valueKey))
	}
	all, err := lifecycle.Bounded(ctx, g.life, g.cfg.RedisTimeout, func(ctx context.Context) (all []inspect.Reply, err error) {
		for _, cmd := range script.RunAll(ctx, g.rdb, calls) {
			one, failed := inspect.Parse(cmd)
			all, err = append(all, one), cmp.Or(err, failed)
		}
		return all, err
	})
	if err != nil {
		return err
	}
	for n := range all {
		of := Inspection{Key: i.Key, State: EntryMissing}
		if n == 0 {
			of = *i
		}
		stamp := of.readEntry(&all[n])
		of.readHolders(&all[n])
		if err := of.confirm(ctx, g, stamp); err != nil {
			return err
		}
		switch {
		case n == 0:
			*i = of
		case of.State != EntryMissing || of.Load != nil || of.Failure != nil:
			of.Key, of.Writers, of.Blocked, of.Intents = "", nil, 0, nil
			i.Versions = append(i.Versions, of)
		}
	}
	return nil
}

// SelfCheck checks, when a service starts, that Redis can be reached, that its user has the rights of docs/redis.md,
// that the scripts do what they should, and that messages arrive. It takes until ctx ends, or 10 seconds without a
// deadline, and does not wait for Redis to recover. The error names what was refused, or says that Redis is slow.
func (g *Guard) SelfCheck(ctx context.Context) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.life.Done()
	return g.checks().Report(ctx, g.cfg.Logger, g.oneWriter(), ErrClosed)
}

func (g *Guard) checks() *selfcheck.Checks {
	c := &selfcheck.Checks{
		Redis: g.rdb, Timeout: g.cfg.RedisTimeout, Life: g.life, Keys: g.keys, Inbox: g.inbox, Link: g.link, Epochs: g.epochs,
		Channels: []string{g.inbox.Channel(), g.notices.Channel}, Notice: g.writes.Notice, Invalidate: g.writes.InvalidateOnce,
		Lock: func(ctx context.Context, key string) error {
			if g.locks == nil {
				return nil // on a Ring, where Update has none
			}
			return g.locks.Do(ctx, key, func(context.Context) error { return nil })
		},
	}
	if g.local != nil {
		c.Local, c.Echoes = true, g.local.NeedsEchoes()
	}
	return c
}
