package protocol

import (
	"strings"
	"testing"
)

// hashtag is the part of a key that decides its slot, as the Redis Cluster specification has it: what stands between
// the first { and the first } after it, unless that is empty.
func hashtag(key string) string {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return key
	}
	tag, _, ok := strings.Cut(rest, "}")
	if !ok || tag == "" {
		return key
	}
	return tag
}

func FuzzValueAndLeaseShareASlot(f *testing.F) {
	for _, key := range []string{"k", "{", "}", "{}", "}{", `\`, `\}`, "a}b", "{a}", "a{b}c", "k}:lease", "\x00"} {
		f.Add("shop", key, "other")
		f.Add("", key, "{"+key)
		f.Add("a:b", key, `\`+key)
	}
	f.Fuzz(func(t *testing.T, prefix, key, other string) {
		if strings.ContainsAny(prefix, "{}") || key == "" || other == "" {
			return
		}
		space := Keyspace{Prefix: prefix}
		value, lease := space.ValueKey(key), LeaseKey(space.ValueKey(key))
		if hashtag(value) != hashtag(lease) || hashtag(value) == value {
			t.Errorf("%q is in slot %q, %q in %q", value, hashtag(value), lease, hashtag(lease))
		}
		if key != other && (value == space.ValueKey(other) || lease == space.ValueKey(other)) {
			t.Errorf("%q and %q collide", key, other)
		}
	})
}
