// Package rollout brings a cache into a running service, and out again: for a share of the keys of each kind, always
// the same ones (Shares), and with a comparison of what the cache has with another answer, of the source or of the
// cache that was there before (Compare). It knows of package cacheguard what its documentation says, and nothing more.
// docs/rollout.md describes the way.
package rollout
