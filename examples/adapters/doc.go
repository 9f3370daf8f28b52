// Package adapters shows the response cache with the routers that Go services use. It has no code of its own: copy the
// examples. Its tests hold them to the same behaviour.
package adapters
