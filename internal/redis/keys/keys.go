// Package keys names keys in Redis so that all keys of one name share a cluster slot.
package keys

// Behind a prefix, the channels that scripts publish on: notices of invalidations for local tiers, and before a random
// text, messages for the waiters of a process.
const (
	Notices = ":invalidated"
	Inboxes = ":inbox:"
)

// Tagged returns prefix:{name}. The caller may append to it. Keys that begin alike up to the brace that ends the hash
// tag share a cluster slot, whatever braces the name has. There is one exception: a name that begins with a closing
// brace would make the tag empty, and the whole key would count. So it gets a backslash in front, and so that no two
// keys collide, does one that begins with a backslash. The prefix has no braces, and the name is not empty.
func Tagged(prefix, name string) string {
	if name[0] == '}' || name[0] == '\\' {
		return prefix + `:{\` + name + "}"
	}
	return prefix + ":{" + name + "}"
}
