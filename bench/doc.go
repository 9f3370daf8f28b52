// Package bench measures cacheguard against what else one might use, on a real redis-server. It is a
// module of its own, so that the rivals are nobody's dependencies: cmd/compare puts them side by side, the benchmarks here look
// inside cacheguard. README.md says what each of them shows.
package bench
