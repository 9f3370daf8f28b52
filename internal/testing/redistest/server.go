package redistest

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/wallclock"
)

// Server is a redis-server. Trouble with it fails the test that started it.
type Server struct {
	tb   testing.TB // nil for a server of TestMain
	node *node
}

// Start runs a redis-server of the test's own and stops it when the test ends. args are more arguments of
// redis-server: "--maxmemory", "64mb".
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return startNode(tb, serverArguments(args))
}

func startNode(tb testing.TB, args arguments) *Server {
	tb.Helper()
	n, err := launch(args)
	if err != nil {
		tb.Fatal(err)
	}
	return adopt(tb, n)
}

// adopt gives a node to a test.
func adopt(tb testing.TB, n *node) *Server {
	tb.Cleanup(func() {
		if err := n.close(); err != nil {
			tb.Error(err)
		}
	})
	return &Server{tb: tb, node: n}
}

func serverArguments(more []string) arguments {
	return func(port int, dir string) ([]string, error) {
		args := []string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
			"--jemalloc-bg-thread", "no", // once the clock is set back, it waits for times that are over, and takes a processor
		}
		return append(args, more...), nil
	}
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return s.node.addr() }

// Port is the server's port.
func (s *Server) Port() int { return s.node.port }

// Client returns a new client that closes when tb ends. tweaks may change its options.
func (s *Server) Client(tb testing.TB, tweaks ...func(*redis.Options)) *redis.Client {
	return closeAtEnd(tb, newClient(s.Addr(), tweaks...))
}

// Kill ends the server with SIGKILL and returns when it has ended.
func (s *Server) Kill() {
	s.must(s.node.current().stop())
}

// Pause stops the server with SIGSTOP: it accepts connections, as the kernel does that, and answers nothing.
func (s *Server) Pause() {
	s.must(s.node.current().proc.pause())
}

// Resume lets a paused server go on, with everything it was sent meanwhile.
func (s *Server) Resume() {
	s.must(s.node.current().proc.signal(syscall.SIGCONT))
}

// SetClock sets the server's wall clock to so much after the machine's. The error says that this cannot be done here.
func (s *Server) SetClock(ahead time.Duration) error {
	return wallclock.Set(wallclock.Offset{Ahead: ahead}, func() []int {
		s.Pause()
		return []int{s.node.current().proc.cmd.Process.Pid}
	}, s.Resume)
}

// Restart kills the server if it runs and starts it on the same port, without its data. A cluster node stays the node
// it was.
func (s *Server) Restart() {
	s.must(s.node.restart())
}

// must fails the test; a server of TestMain has none to fail.
func (s *Server) must(err error) {
	if err == nil {
		return
	}
	if s.tb == nil {
		panic(err)
	}
	s.tb.Helper()
	s.tb.Fatal(err)
}
