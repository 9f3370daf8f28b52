// Package adapters shows the response cache with the routers that Go services use. It has no code of its own: the examples are
// what to copy, and its tests hold them to the same behaviour.
package adapters
