// Package bench measures cacheguard against what else one might use, on a real redis-server. It has only benchmarks, in
// a module of its own, so that the rivals are nobody's dependencies. README.md says what each benchmark shows.
package bench
