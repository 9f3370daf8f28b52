// Package rungs opens every kind of lock of the library, on servers of its own, for examples and benchmarks. It is a module because
// it needs the clients of all of them.
package rungs
