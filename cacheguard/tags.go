package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cacheguard/go/internal/epoch"
)

const (
	maxTags = 256 // of an entry
	maxTag  = 512 // bytes

	maxAllTags = 50 << 10 // bytes
)

// SetTags adds tags to the entry being loaded, or written by a Put, so that InvalidateTags finds it. A loader or write calls it with the context
// that it was given; with another context it does nothing. In GetMany, the tags apply to all keys of a call of load. Remembered absence has tags too.
//
// An entry can have 256 tags of 1 to 512 bytes each, and 50 KiB together. Beyond that, the value reaches those who wait for it, but is not stored,
// and Hooks.OnUnstorable gets the reason.
//
// A value with tags is not stored if one of its tags may have been invalidated since its load began. A tag that the Guard did not
// know before the load counts as invalidated if any tag was; the next load of the key knows it.
//
// A hit asks Redis for the value and for what says that it is valid in one request, with the tags that the key had last. If it has others
// now, they cost another one.
func SetTags(ctx context.Context, tags ...string) {
	if l := loadingOf(ctx); l != nil {
		l.addTags(tags)
	}
}

// InvalidateTags is Invalidate for all entries with one of the tags, including those being loaded. It takes a round trip, however many
// there are.
//
// A Get that begins after InvalidateTags returned nil, in any process, never returns a value with one of the tags that was loaded
// before. As with Invalidate, the request is sent even if ctx has ended. If it fails, it is pending, and until it succeeds the
// Guard does not serve entries with the tag. The Key of the *RedisError is the tag.
//
// An empty tag, and one of more than 512 bytes, is an error; the others are invalidated all the same.
func (g *Guard) InvalidateTags(ctx context.Context, tags ...string) error {
	if g == nil {
		return errNilGuard
	}
	var names []string
	var refused error
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			refused = errors.Join(refused, err)
		} else {
			names = append(names, epoch.OfTag(tag))
		}
	}
	if len(names) == 0 {
		return refused
	}
	return errors.Join(refused, g.invalidateNames(ctx, names))
}

func checkTag(tag string) error {
	switch {
	case tag == "":
		return errors.New("cacheguard: tag is empty")
	case len(tag) > maxTag:
		return fmt.Errorf("cacheguard: tag %.40q… has %d bytes, more than %d", tag, len(tag), maxTag)
	}
	return nil
}

// checkTags refuses tags that no entry can have.
func checkTags(tags []string) error {
	if len(tags) > maxTags {
		return fmt.Errorf("cacheguard: it has more than %d tags", maxTags)
	}
	bytes := 0
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			return err
		}
		bytes += len(tag)
	}
	if bytes > maxAllTags {
		return fmt.Errorf("cacheguard: its tags have %d bytes together, more than %d", bytes, maxAllTags)
	}
	return nil
}

// union is what is in the lists, each once, in byte order.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards. It takes a round trip, however many there are. The Key of the
// *RedisError is empty.
func (g *Guard) InvalidateAll(ctx context.Context) error {
	return g.invalidateNames(ctx, []string{epoch.All})
}

// invalidateNames ends the epochs of the names, in each part of the keyspace.
func (g *Guard) invalidateNames(ctx context.Context, names []string) error {
	if g == nil {
		return errNilGuard
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	return g.send(ctx, &g.ofEpochs.Sender, g.ofEpochs.InAllParts(names))
}
