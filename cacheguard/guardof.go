package cacheguard

// Guard is the Guard that the Cache is a view of.
func (c *Cache[K, V]) Guard() *Guard {
	if c == nil {
		return nil
	}
	return c.guard
}
