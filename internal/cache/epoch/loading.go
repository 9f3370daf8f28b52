package epoch

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/send"
)

// touchEvery is how many loads there are for each that lets its epochs last anew.
const touchEvery = 256

// ErrUnproven says that a tag may have been invalidated since the load began.
var ErrUnproven = errors.New("a tag may have been invalidated")

// loading is what a Reading keeps for a load.
type loading struct {
	made     map[string]protocol.Epoch // by key: epochs that Redis did not have at first
	askedAny *send.Read
	anyTag   protocol.Epoch // of all tags together, as it was before the load; zero: not known
}

// Prepare begins what a load needs beside Keys, and does not wait. It is followed by Ready, if the load is to begin.
//
// A load may have tags that nobody knew before. The epoch of all tags together, which every invalidation of a tag
// removes too, then tells whether one was invalidated since. Where there are no tags, the one that was seen first
// serves for ever.
func (r *Reading) Prepare(ctx context.Context) {
	known := r.part.known.Load()
	if known != nil {
		r.anyTag = *known
	}
	if r.epochs.memory.used.Load() || known == nil {
		r.askedAny = r.epochs.ask(ctx, []string{r.part.anyTag})
	}
}

// Ready waits for what was asked, and makes the epochs that are missing. It is called before the load begins. If Redis
// fails, the load goes on, and Stamp says why it cannot be stored.
func (r *Reading) Ready(ctx context.Context) {
	if r.wait(ctx) != nil {
		return
	}
	var missing []string
	for _, key := range r.Keys() {
		if e, _ := r.epoch(key); e.IsZero() {
			missing = append(missing, key)
		}
	}
	if r.takeAny(ctx); r.anyTag.IsZero() {
		missing = append(missing, r.part.anyTag)
	}
	defer func() { r.epochs.see(r.part, r.before(r.Keys()[0]), r.forgot) }()
	if len(missing) == 0 {
		r.touch()
		return
	}
	made, err := r.epochs.make(ctx, missing)
	if r.failed = err; err != nil {
		return
	}
	r.made = make(map[string]protocol.Epoch, len(missing))
	for i, key := range missing {
		if r.made[key] = made[i]; key == r.part.anyTag {
			r.learnAny(made[i])
		}
	}
}

// takeAny takes the epoch of all tags together.
func (r *Reading) takeAny(ctx context.Context) {
	if r.askedAny == nil {
		return
	}
	r.anyTag = protocol.Epoch{}
	if wait(ctx, r.askedAny) == nil {
		r.learnAny(protocol.EpochOf(r.askedAny.Raw))
	}
}

func (r *Reading) learnAny(e protocol.Epoch) {
	if r.anyTag = e; !e.IsZero() {
		r.part.known.Store(&e)
	}
}

// touch lets the epochs last for another while, in one of many loads.
func (r *Reading) touch() {
	if r.epochs.loads.Add(1)%touchEvery != 0 {
		return
	}
	e, keys := r.epochs, r.Keys()
	e.Background(func() { _, _ = e.make(context.Background(), keys) }) // stop: RedisTimeout; another load tries again
}

// before is the epoch at a key as it was before the load.
func (r *Reading) before(key string) protocol.Epoch {
	if e, made := r.made[key]; made {
		return e
	}
	e, _ := r.epoch(key)
	return e
}

// Confirms reports whether a stamp has the epochs that held before the load. A load that read an entry must not make
// that entry valid again.
func (r *Reading) Confirms(stamp protocol.Stamp) bool {
	keys := r.common.keys
	if r.before(keys[0]) != stamp.Prefix || r.kind != "" && r.before(keys[1]) != stamp.Kind {
		return false
	}
	for tag, was := range stamp.Tags.All() {
		if r.before(r.part.key(OfTag(string(tag)))) != was {
			return false
		}
	}
	return true
}

// Stamp returns the stamp of what was loaded after Ready. The error is ErrUnproven, or Redis'.
func (r *Reading) Stamp(ctx context.Context, tags []string) (s protocol.Stamp, err error) {
	keys := r.common.keys
	if s.Prefix = r.before(keys[0]); r.kind != "" {
		s.Kind = r.before(keys[1])
	}
	if s.Prefix.IsZero() || r.kind != "" && s.Kind.IsZero() {
		return s, errors.Join(errors.New("the epochs are not known"), r.failed)
	}
	if len(tags) == 0 {
		return s, nil
	}
	epochs, err := r.ofTags(ctx, tags)
	if err != nil {
		return s, err
	}
	for i, tag := range tags {
		s.Tags = s.Tags.Append(tag, epochs[i])
	}
	return s, nil
}

// ofTags returns the epochs of tags, as they were before the load.
func (r *Reading) ofTags(ctx context.Context, tags []string) ([]protocol.Epoch, error) {
	all := make([]protocol.Epoch, len(tags))
	unknown := []string{r.part.anyTag}
	for i, tag := range tags {
		key := r.part.key(OfTag(tag))
		if all[i] = r.before(key); all[i].IsZero() {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 1 {
		return all, nil
	}
	r.epochs.memory.note(r.part, r.key, r.kind, OfTags(tags)) // the next load knows them
	if r.anyTag.IsZero() {
		return nil, ErrUnproven
	}
	now, err := r.epochs.make(ctx, unknown)
	if err != nil || now[0] != r.anyTag {
		return nil, ErrUnproven
	}
	for i, next := 0, 1; i < len(all); i++ {
		if all[i].IsZero() {
			all[i] = now[next]
			next++
		}
	}
	return all, nil
}

// Prove begins to ask whether the stamp's epochs are still the current ones, and does not wait. Check is to follow.
func (r *Reading) Prove(ctx context.Context, stamp protocol.Stamp) (proof Reading) {
	proof = Reading{epochs: r.epochs, part: r.part, common: r.common, number: r.number, key: r.key, kind: r.kind, since: r.epochs.Pending.Moment()}
	if len(stamp.Tags) > 0 {
		proof.guess = newRemembered(r.part, r.kind, OfTags(stamp.Tags.Names()))
	}
	proof.Ask(ctx)
	return proof
}
