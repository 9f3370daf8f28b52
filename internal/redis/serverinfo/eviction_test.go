package serverinfo

import "testing"

func TestAnEvictingPolicyIsFoundWhereItMatters(t *testing.T) {
	t.Parallel()
	for info, bad := range map[string]bool{
		"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":    false, // nothing is ever evicted
		"maxmemory:100\r\nmaxmemory_policy:noeviction\r\n":   false,
		"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n":  true,
		"maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n": true,
		"": false,
	} {
		if err := evicts(info); (err != nil) != bad {
			t.Errorf("%q: %v", info, err)
		}
	}
}
