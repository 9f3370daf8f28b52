package cacheguard

import "errors"

// Changes names what a write changes: keys of a Guard, and tags. Those of several Caches are put together by appending.
type Changes struct {
	Keys []string
	Tags []string
}

// Changes are those of the things. A thing that has no key (see Key) becomes an empty key, which every call refuses.
func (c *Cache[K, V]) Changes(ids ...K) Changes {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = c.Key(id)
	}
	return Changes{Keys: keys}
}

// check refuses what cannot be named.
func (c Changes) check() error {
	for _, key := range c.Keys {
		if key == "" {
			return errEmptyKey
		}
	}
	var refused []error
	for _, tag := range c.Tags {
		refused = append(refused, checkTag(tag))
	}
	return errors.Join(refused...)
}
