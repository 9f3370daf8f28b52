// Package rungs opens locks of every kind that the library has, on servers of their own, for examples and benchmarks. It is a module
// because it needs the clients of all of them.
package rungs
