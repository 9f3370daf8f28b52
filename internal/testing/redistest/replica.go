package redistest

import (
	"context"
	"fmt"
	"testing"
)

// StartReplica runs a replica of a server, and returns when it follows it.
func StartReplica(tb testing.TB, of *Server) *Server {
	tb.Helper()
	s := Start(tb, "--replicaof", fmt.Sprintf("127.0.0.1 %d", of.Port()))
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	if err := await(ctx, func() error { return linked(ctx, s.node.current().control) }); err != nil {
		tb.Fatal(err)
	}
	return s
}

// CutOff pauses a replica and makes its primary end their connection, with all that was on its way. Until it goes on, nothing that is
// written reaches it.
func (s *Server) CutOff(replica *Server) {
	replica.Pause()
	s.must(s.node.current().control.Do(context.Background(), "client", "kill", "type", "replica").Err())
}
