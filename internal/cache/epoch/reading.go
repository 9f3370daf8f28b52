package epoch

import (
	"context"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/send"
)

// Reading is a question for the epochs of the names that an entry may have. All that it answers with was read after it
// began.
//
// Begin is followed by a read of the value and of Keys, and by Take, or by Ask. Then Compare and Holds, or Check, judge
// an entry; Prepare, Ready and Stamp serve a load. It is not safe for concurrent use.
type Reading struct {
	Under []tier.NameMark // states of the names in the local tier, from before they were asked about
	Ends  bool            // one of the epochs compared ends with an intent: the local tier may not keep what has it

	epochs *Epochs
	part   *part
	common *common
	number int // of the part
	key    string
	kind   string
	guess  *remembered // the tags whose epochs are asked for; nil: none
	since  uint64      // when it began, for Pending
	forgot uint64      // when it began, for Epochs.see

	read   *send.Read // of what Keys are
	asking bool       // it has to be waited for
	failed error      // why there is no answer
	more   *send.Read // of the tags of the entry that these did not have; nil: the link is closed
	lacks  bool       // more has to be waited for

	stamp    protocol.Stamp // that is compared
	revoked  bool           // it is not valid any more
	redisErr error          // Redis did not say

	loading
}

// Begin begins a Reading for a key, whose entry belongs to that kind; empty: to none. Known are tags that it has in any
// case.
func (e *Epochs) Begin(key, valueKey, kind string, known []string) (r Reading) {
	e.BeginIn(&r, key, valueKey, kind, known)
	return r
}

// BeginIn is Begin in a Reading that is empty: one of many, which are not moved.
func (e *Epochs) BeginIn(r *Reading, key, valueKey, kind string, known []string) {
	r.epochs, r.number, r.key, r.kind = e, e.Breakers.Part(valueKey), key, kind
	r.part = &e.parts[r.number]
	r.common, r.guess = r.part.common(kind), e.memory.of(key, kind)
	r.since, r.forgot = e.Pending.Moment(), r.part.forgot.Load()
	if r.guess == nil && len(known) > 0 {
		r.guess = newRemembered(r.part, kind, OfTags(known))
	}
	r.mark(r.common.names[1:]) // the end of All voids the tier
	if r.guess != nil {
		r.mark(r.guess.names)
	}
}

// mark notes the states of names in the local tier, if there is one.
func (r *Reading) mark(names []string) {
	if r.epochs.Tier == nil {
		return
	}
	for _, name := range names {
		r.Under = append(r.Under, r.epochs.Tier.MarkName(name))
	}
}

// Keys are what is to be read together with the value.
func (r *Reading) Keys() []string {
	if r.guess != nil {
		return r.guess.keys
	}
	return r.common.keys
}

// Take takes what was read together with the value.
func (r *Reading) Take(read *send.Read) { r.read = read }

// Ask begins to read Keys without a value, and does not wait.
func (r *Reading) Ask(ctx context.Context) { r.read, r.asking = r.epochs.ask(ctx, r.Keys()), true }

// wait waits for the reply to Ask, once. The error is the context's, or send.ErrClosed.
func (r *Reading) wait(ctx context.Context) error {
	if !r.asking {
		return r.failed
	}
	r.asking, r.failed = false, wait(ctx, r.read)
	if r.failed != nil {
		r.read = nil // it may be under way
	}
	return r.failed
}

func (e *Epochs) ask(ctx context.Context, keys []string) *send.Read {
	read, _ := e.Link.Ask(ctx, keys[0], keys[1:]...) // refuses when it is closed only: nil
	return read
}

func wait(ctx context.Context, read *send.Read) error {
	if read == nil {
		return send.ErrClosed
	}
	return read.Wait(ctx)
}

// epoch returns the epoch at a key; zero: there is none, or Redis did not say. A tag in more was marked after read was
// sent. An epoch that read has of it, because another key in the same request has the tag, too, may be older than the
// mark, and the local tier would keep what is invalid.
func (r *Reading) epoch(key string) (e protocol.Epoch, redisErr error) {
	for _, read := range [...]*send.Read{r.more, r.read} {
		if read != nil {
			if raw, err, asked := read.Beside(key); asked {
				r.Ends = r.Ends || protocol.Ends(raw)
				return protocol.EpochOf(raw), err
			}
		}
	}
	return e, nil
}

// Compare begins to judge an entry of the Reading's kind by its stamp, and does not wait. It is followed by Holds.
func (r *Reading) Compare(ctx context.Context, stamp protocol.Stamp) {
	r.stamp = stamp
	for i, was := range [...]protocol.Epoch{stamp.Prefix, stamp.Kind} {
		if i < len(r.common.keys) {
			r.compare(r.common.names[i], r.common.keys[i], was)
		}
	}
	if len(stamp.Tags) > 0 || r.guess != nil {
		r.compareTags(ctx)
	}
}

// compare compares an epoch of the entry with the one that was read.
func (r *Reading) compare(name, key string, was protocol.Epoch) {
	current, err := r.epoch(key)
	switch {
	case err != nil:
		r.redisErr = err
	case current != was || was.IsZero():
		r.revoked = true
	case !r.epochs.Pending.Quiet(r.since) && r.epochs.Pending.Had(name, r.number, r.since):
		r.revoked = true
	}
}

// compareTags does so with the tags. It asks for the epochs of tags that were not guessed.
func (r *Reading) compareTags(ctx context.Context) {
	guessed, i := true, 0
	var names, keys []string
	for tag, was := range r.stamp.Tags.All() {
		at := r.guess.find(tag, i)
		if guessed = guessed && at == i; at >= 0 {
			r.compare(r.guess.names[at], r.guess.key(at), was)
		} else {
			name := OfTag(string(tag))
			names, keys = append(names, name), append(keys, r.part.key(name))
		}
		i++
	}
	if !guessed || r.guess != nil && len(r.guess.names) != i {
		r.epochs.memory.note(r.part, r.key, r.kind, OfTags(r.stamp.Tags.Names()))
	}
	if len(keys) == 0 || r.revoked {
		return
	}
	r.mark(names)
	r.more, r.lacks = r.epochs.ask(ctx, keys), true
}

// Lacking is a read that Holds waits for; nil: it waits for none.
func (r *Reading) Lacking() *send.Read {
	if r.lacks && !r.revoked {
		return r.more
	}
	return nil
}

// Holds reports whether the entry is valid. The redisErr says that Redis did not tell.
func (r *Reading) Holds(ctx context.Context) (holds bool, redisErr, err error) {
	if r.lacks && !r.revoked {
		if err := wait(ctx, r.more); err != nil {
			r.more = nil
			return false, nil, err
		}
		for tag, was := range r.stamp.Tags.All() {
			if r.guess.find(tag, 0) < 0 {
				name := OfTag(string(tag))
				r.compare(name, r.part.key(name), was)
			}
		}
	}
	if r.revoked {
		return false, nil, nil // whatever the others are
	}
	return r.redisErr == nil, r.redisErr, nil
}

// Check asks for the epochs if that has not been done, and reports whether an entry is valid. The redisErr says that
// Redis did not tell.
func (r *Reading) Check(ctx context.Context, stamp protocol.Stamp) (holds bool, redisErr, err error) {
	if r.read == nil && r.failed == nil {
		r.Ask(ctx)
	}
	if err := r.wait(ctx); err != nil {
		return false, nil, err
	}
	r.Compare(ctx, stamp)
	return r.Holds(ctx)
}
