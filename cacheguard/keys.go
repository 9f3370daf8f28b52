package cacheguard

// The keys in Redis of a key K under prefix P are P:{K} for the value and P:{K}:lease for the lease. Both begin alike
// up to the brace that ends the hash tag, whatever braces K has, so they share a cluster slot. There is one
// exception: a K that begins with a closing brace would make the tag empty, and the whole name would count. So it
// gets a backslash in front, and so that no two keys collide, does one that begins with a backslash.
func (g *Guard) redisKey(key string) string {
	if key[0] == '}' || key[0] == '\\' {
		return g.keyPrefix + `\` + key + "}"
	}
	return g.keyPrefix + key + "}"
}

func leaseKey(valueKey string) string {
	return valueKey + ":lease"
}
