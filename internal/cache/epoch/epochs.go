package epoch

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
)

// A name says what is invalidated together. Its first letter says what it is.
const (
	All        = tier.All // everything under the Prefix
	kindLetter = 'k'
	tagLetter  = 't'
)

// OfKind is the name of a kind.
func OfKind(kind string) string { return string(kindLetter) + kind }

// Kind is the inverse of OfKind.
func Kind(name string) (kind string, is bool) { return strings.CutPrefix(name, string(kindLetter)) }

// OfTag is the name of a tag.
func OfTag(tag string) string { return string(tagLetter) + tag }

// OfTags are the names of tags.
func OfTags(tags []string) []string {
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = OfTag(tag)
	}
	return names
}

// Shown is a name as people know it: the tag, or the kind; nothing for everything.
func Shown(name string) string {
	if name == All {
		return ""
	}
	return name[1:]
}

// Pending knows which invalidations have not reached Redis. A moment is a number that grows.
type Pending interface {
	Moment() uint64
	// Quiet reports whether nothing was pending at any time since the moment.
	Quiet(since uint64) bool
	// Had reports whether the name's invalidation in that part was pending at any time since the moment.
	Had(name string, part int, since uint64) bool
}

// Config is what Epochs works with. Of a part's keys, one request reads any number.
type Config struct {
	Prefix   string
	Channel  string // scripts publish the notices for local tiers there
	Link     *send.Link
	Breakers *breaker.Set
	Pending  Pending

	// Removed, which may be nil, is called when the epoch of everything is gone though Forget was not called.
	Removed func()

	// Background runs a function that may outlast the call that started it, and reports whether it does.
	Background func(func()) bool
}

// Epochs are the epochs of one Prefix. It is safe for concurrent use.
type Epochs struct {
	Tier *tier.Tier // that is told before a name is asked about; nil: there is none. It does not change after the first call.

	Config
	parts  []part
	memory memory
	loads  atomic.Uint64
}

// part is a part of the keyspace, which has an epoch of each name for itself.
type part struct {
	begin  string // of the keys of all its epochs
	anyTag string // the key of the epoch of all tags together
	known  atomic.Pointer[protocol.Epoch]
	seen   atomic.Pointer[protocol.Epoch] // of everything, by a load; nil: by none since it was forgotten
	forgot atomic.Uint64                  // how often that was

	kinds atomic.Pointer[map[string]*common] // the map does not change
}

// New returns the Epochs of a Prefix. It does no I/O.
func New(c Config) *Epochs {
	e := &Epochs{Config: c, parts: make([]part, c.Breakers.Len())}
	e.memory.seed = maphash.MakeSeed()
	for i := range e.parts {
		e.parts[i].kinds.Store(&map[string]*common{})
	}
	for number, left := 0, len(e.parts); left > 0; number++ { // the first number whose keys are in the part
		begin := c.Prefix + ":{" + strconv.Itoa(number) + "}:epoch"
		if p := &e.parts[c.Breakers.Part(begin)]; p.begin == "" {
			p.begin, p.anyTag = begin, begin+":tags"
			left--
		}
	}
	return e
}

// Parts is how many parts of the keyspace have an epoch of each name.
func (e *Epochs) Parts() int { return len(e.parts) }

// Key is the key of a name's epoch in a part.
func (e *Epochs) Key(name string, part int) string { return e.parts[part].key(name) }

func (p *part) key(name string) string {
	if name == All {
		return p.begin
	}
	return p.begin + ":" + name[:1] + ":" + name[1:]
}

// Known reports whether Redis has an epoch of the name, without which no entry that has the name is valid.
func (e *Epochs) Known(ctx context.Context, name string) (known bool, err error) {
	for part := range e.parts {
		read, ended := e.Link.Get(ctx, e.Key(name, part))
		if ended != nil {
			return false, ended
		}
		if err = cmp.Or(err, read.Err); !protocol.EpochOf(read.Raw).IsZero() {
			return true, nil
		}
	}
	return false, err
}

// Forget is called when this instance has invalidated the name in that part.
func (e *Epochs) Forget(name string, part int) {
	switch p := &e.parts[part]; name[0] {
	case All[0]:
		p.forgot.Add(1)
		p.seen.Store(nil)
	case tagLetter:
		p.known.Store(nil)
	}
}

// see notes the epoch of everything that a load has, if it was not forgotten since the load asked.
func (e *Epochs) see(p *part, now protocol.Epoch, forgot uint64) {
	was := p.seen.Load()
	if now.IsZero() || p.forgot.Load() != forgot || was != nil && *was == now {
		return
	}
	if p.seen.CompareAndSwap(was, &now) && was != nil && e.Removed != nil {
		e.Removed()
	}
}

// common is what all entries of a kind have: the epoch of the Prefix, and the kind's if there is one.
type common struct{ names, keys []string }

func (p *part) common(kind string) *common {
	for {
		known := p.kinds.Load()
		if c := (*known)[kind]; c != nil {
			return c
		}
		c := &common{names: []string{All}, keys: []string{p.key(All)}}
		if kind != "" {
			c.names, c.keys = append(c.names, OfKind(kind)), append(c.keys, p.key(OfKind(kind)))
		}
		more := maps.Clone(*known)
		more[kind] = c
		p.kinds.CompareAndSwap(known, &more)
	}
}
