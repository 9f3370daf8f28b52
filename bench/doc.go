// Package bench measures cacheguard against its alternatives, on a real redis-server. It is a module of its own, so that users
// do not depend on the rivals. cmd/compare puts them side by side; the benchmarks here look inside cacheguard. README.md says
// what each of them shows.
package bench
