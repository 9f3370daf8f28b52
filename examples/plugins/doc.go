// Package plugins shows where a cache goes in a service that is built on gRPC, Connect, a GraphQL dataloader, Fiber or Fx. Each of its packages is one file or two to
// copy. The tests run all of them on a redis-server; docs/plugging-in.md says what fits, and what does not. It is a module of its own, so that the
// other examples run without compiling these frameworks.
package plugins
