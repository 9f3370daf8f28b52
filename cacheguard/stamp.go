package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/protocol"
)

// stamper gives the entry of a load its stamps: the versions that its tags had before the loader began.
type stamper struct {
	versions *versions
	tags     []string          // that are known before
	asked    asked             // their versions, and behind them that of all tags together
	before   map[string]string // versions by tag
	anyTag   string            // the version of all tags together; empty: nobody knows
}

// stamper begins to read what a load will need, and does not wait. It is followed by one call of ready. A Guard that has nothing to do
// with tags reads nothing, but for the version of all tags together, once.
func (r *rebuild) stamper(ctx context.Context) *stamper {
	v := r.guard.versions
	s := &stamper{versions: v, anyTag: v.known()}
	s.tags = union(r.job.known, tagsOf(r.unfit), v.missed(r.job.key))
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
	for stamps := e.Stamps; len(stamps) > 0; {
		var name []byte
		if name, _, stamps = stamps.Next(); name[0] == tagKind {
			tags = append(tags, string(name[1:]))
		}
	}
	return tags
}

// abandon is for a load that does not begin.
func (s *stamper) abandon() {
	if s != nil && len(s.asked.reads) > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = s.asked.wait(ctx) // nobody needs them
	}
}

// ready waits for what was asked, and makes versions that are not there. What fails is not known, and the load goes on.
func (s *stamper) ready(ctx context.Context) {
	s.before = make(map[string]string, len(s.tags))
	if len(s.asked.reads) > 0 {
		s.take(ctx)
	}
	if s.anyTag == "" && ctx.Err() == nil {
		s.anyTag = s.versions.learnAnyTag(ctx)
	}
}

// take takes the versions that were asked for.
func (s *stamper) take(ctx context.Context) {
	if _, err := s.asked.wait(ctx); err != nil {
		return
	}
	var absent, keys []string
	for i, read := range s.asked.reads {
		value := string(read.Raw)
		switch {
		case i == len(s.tags): // of all tags together
			s.anyTag = value
			s.versions.learn(value)
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

// confirms reports whether the stamps of an entry are the versions of now: what has a tag that was invalidated must not be made good
// again by its replacement.
func (s *stamper) confirms(raw []byte) bool {
	if raw == nil {
		return true
	}
	e, err := protocol.DecodeEntry(raw)
	if err != nil {
		return true // nobody could read it
	}
	for stamps := e.Stamps; len(stamps) > 0; {
		var name, version []byte
		name, version, stamps = stamps.Next()
		if name[0] == tagKind && s.before[string(name[1:])] != string(version) {
			return false
		}
	}
	return true
}

// stamp returns the stamps of an entry with these tags. Not proven: one of them may have been invalidated since the loader began.
func (s *stamper) stamp(ctx context.Context, tags []string) (stamps protocol.Stamps, proven bool) {
	if len(tags) == 0 {
		return nil, true
	}
	s.versions.used.Store(true)
	var unknown, keys []string
	for _, tag := range tags {
		if s.before[tag] == "" {
			unknown, keys = append(unknown, tag), append(keys, s.versions.key(tagName(tag)))
		}
	}
	after := make(map[string]string, len(unknown))
	if len(unknown) > 0 {
		if s.anyTag == "" {
			return nil, false
		}
		now, err := s.versions.obtain(ctx, keys)
		if err != nil || !s.noneWasInvalidated(ctx) {
			return nil, false
		}
		for i, tag := range unknown {
			after[tag] = now[i]
		}
	}
	for _, tag := range tags {
		version := s.before[tag]
		if version == "" {
			version = after[tag]
		}
		stamps = stamps.Append(tagName(tag), version)
	}
	return stamps, true
}

// noneWasInvalidated reports whether no tag at all was invalidated since the version of all tags together was read.
func (s *stamper) noneWasInvalidated(ctx context.Context) bool {
	read, err := s.versions.guard.link.Get(ctx, s.versions.guard.keys.AnyTagKey())
	return err == nil && read.Err == nil && string(read.Raw) == s.anyTag
}
