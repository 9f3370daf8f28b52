package cacheguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/protocol"
)

// stamper gives the entry of a load its stamps: the versions that its tags had before the loader began.
type stamper struct {
	versions *versions
	tags     []string          // that are known before
	asked    asked             // their versions, and behind them that of all tags together
	before   map[string]string // versions by tag
	anyTag   string            // the version of all tags together; empty: nobody knows
	realms   realms            // that the key belongs to
	kind     string
	seat     seat
	realmErr error // why their versions are not known
}

// errUnproven says that one of the tags may have been invalidated since the loader began.
var errUnproven = errors.New("a tag may have been invalidated")

// stamper begins to read what a load of the job will need, and does not wait. Old is the entry that it is to replace; nil if there is
// none. It is followed by one call of ready, or of abandon. A Guard that does not use tags reads nothing for them, except once the
// version of all tags together.
func (v *versions) stamper(ctx context.Context, j *job, old []byte) *stamper {
	s := &stamper{versions: v, anyTag: v.knownAnyTag(), realms: v.realms(ctx, j.valueKey, j.kind), kind: j.kind, seat: j.policy.seat}
	s.tags = union(j.known, tagsOf(old), v.missed(j.key))
	s.tags = s.tags[:min(len(s.tags), 3*maxTags)]
	keys := make([]string, 0, len(s.tags)+1)
	for _, tag := range s.tags {
		keys = append(keys, v.key(tagName(tag)))
	}
	if v.used.Load() && s.anyTag != "" { // else it is learned, once, when the lease is there
		s.anyTag = ""
		keys = append(keys, v.guard.keys.AnyTagKey())
	}
	if len(keys) > 0 {
		s.asked = v.ask(ctx, keys...)
	}
	return s
}

// tagsOf returns the tags of an entry.
func tagsOf(raw []byte) (tags []string) {
	if raw == nil {
		return nil
	}
	e, err := protocol.DecodeEntry(raw)
	if err != nil {
		return nil
	}
	for name := range e.Stamps.All() {
		if name[0] == tagStamp {
			tags = append(tags, string(name[1:]))
		}
	}
	return tags
}

// abandon is for a load that does not begin.
func (s *stamper) abandon() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.asked.wait(ctx) // nobody needs them
	_, _ = s.realms.asked.wait(ctx)
}

// ready waits for the reads, and makes missing versions. A version whose read fails is unknown, and the load goes on.
func (s *stamper) ready(ctx context.Context) {
	s.realmErr = s.realms.wait(ctx)
	if len(s.asked.reads) > 0 {
		s.take(ctx)
	}
	if ctx.Err() == nil {
		s.makeMissing(ctx)
	}
}

// makeMissing makes the versions that every load needs, in the first load of all.
func (s *stamper) makeMissing(ctx context.Context) {
	var keys []string
	var set []func(version string)
	if s.anyTag == "" {
		keys, set = append(keys, s.versions.guard.keys.AnyTagKey()), append(set, func(version string) {
			s.anyTag = version
			s.versions.learnAnyTag(version)
		})
	}
	asked := time.Now()
	for i, p := range s.realms.parts {
		if p != nil && s.realms.version[i] == "" {
			drops := p.asking()
			keys, set = append(keys, p.key), append(set, func(version string) {
				s.realms.version[i] = version
				s.versions.learn(p, version, asked, drops)
			})
		}
	}
	if len(keys) == 0 {
		return
	}
	made, err := s.versions.obtain(ctx, keys)
	for i, version := range made {
		if version != "" {
			set[i](version)
		}
	}
	s.realmErr = cmp.Or(s.realmErr, s.realms.redisErr, err)
}

// take takes the versions that were asked for.
func (s *stamper) take(ctx context.Context) {
	if _, err := s.asked.wait(ctx); err != nil {
		return
	}
	s.before = make(map[string]string, len(s.tags))
	var absent, keys []string
	for i, read := range s.asked.reads {
		value := string(read.Raw)
		switch {
		case i == len(s.tags): // of all tags together
			s.anyTag = value
			s.versions.learnAnyTag(value)
		case value != "":
			s.before[s.tags[i]] = value
		case read.Err == nil:
			absent, keys = append(absent, s.tags[i]), append(keys, s.asked.keys[i])
		}
	}
	if len(absent) == 0 {
		return
	}
	if made, err := s.versions.obtain(ctx, keys); err == nil {
		for i, tag := range absent {
			s.before[tag] = made[i]
		}
	}
}

// confirms reports whether the stamps of an entry are the current versions: a replacement must not make an entry valid again whose
// tag was invalidated.
func (s *stamper) confirms(raw []byte) bool {
	if raw == nil {
		return true
	}
	e, err := protocol.DecodeEntry(raw)
	if err != nil {
		return true // nobody could read it
	}
	for name, version := range e.Stamps.All() {
		var now string
		switch name[0] {
		case rootStamp:
			now = s.realms.version[0]
		case kindStamp:
			now = s.realms.version[1]
		case tagStamp:
			now = s.before[string(name[1:])]
		case versionStamp:
			continue
		}
		if now != string(version) {
			return false
		}
	}
	return true
}

// stamp returns the stamps of an entry with these tags. The error is errUnproven, or that of Redis.
func (s *stamper) stamp(ctx context.Context, tags []string) (stamps protocol.Stamps, err error) {
	stamps = s.seat.stamp(make(protocol.Stamps, 0, 64))
	for i, p := range s.realms.parts {
		name := string(rootStamp)
		switch {
		case p == nil:
			continue
		case s.realms.version[i] == "":
			return nil, fmt.Errorf("what it belongs to has no version: %w", s.realmErr)
		case i > 0:
			name = kindName(s.kind)
		}
		stamps = stamps.Append(name, s.realms.version[i])
	}
	if len(tags) == 0 {
		return stamps, nil
	}
	s.versions.used.Store(true)
	if err := s.complete(ctx, tags); err != nil {
		return nil, err
	}
	for _, tag := range tags {
		stamps = stamps.Append(tagName(tag), s.before[tag])
	}
	return stamps, nil
}

// complete reads the versions of tags that were not known before.
func (s *stamper) complete(ctx context.Context, tags []string) error {
	var unknown, keys []string
	for _, tag := range tags {
		if s.before[tag] == "" {
			unknown, keys = append(unknown, tag), append(keys, s.versions.key(tagName(tag)))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	if s.anyTag == "" {
		return errUnproven
	}
	now, err := s.versions.obtain(ctx, keys)
	if err != nil || !s.noneWasInvalidated(ctx) {
		return errUnproven
	}
	if s.before == nil {
		s.before = make(map[string]string, len(unknown))
	}
	for i, tag := range unknown {
		s.before[tag] = now[i]
	}
	return nil
}

// noneWasInvalidated reports whether no tag at all was invalidated since the version of all tags together was read.
func (s *stamper) noneWasInvalidated(ctx context.Context) bool {
	read, err := s.versions.guard.link.Get(ctx, s.versions.guard.keys.AnyTagKey())
	return err == nil && read.Err == nil && string(read.Raw) == s.anyTag
}
