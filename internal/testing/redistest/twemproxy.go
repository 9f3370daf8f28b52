package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Twemproxy is a proxy that knows no pub/sub, no HELLO, no INFO and no script without a key: it ends the connection of a client that asks.
type Twemproxy struct{ addr string }

// StartTwemproxy puts a twemproxy, whose program is nutcracker, before servers. With more than one server, what stands between braces in a key says which has it.
func StartTwemproxy(tb testing.TB, servers ...*Server) *Twemproxy {
	tb.Helper()
	program, err := exec.LookPath("nutcracker")
	if err != nil {
		tb.Fatal("nutcracker (twemproxy) is missing: install it, or run make test-all, which does")
	}
	dir := tb.TempDir()
	p := &Twemproxy{addr: fmt.Sprintf("127.0.0.1:%d", FreePort(tb))}
	var conf strings.Builder
	fmt.Fprintf(&conf, "pool:\n  listen: %s\n  redis: true\n  hash: fnv1a_64\n  hash_tag: \"{}\"\n  distribution: ketama\n  servers:\n", p.addr)
	for _, s := range servers {
		fmt.Fprintf(&conf, "   - %s:1\n", s.Addr())
	}
	file := filepath.Join(dir, "nutcracker.yml")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	Serve(tb, exec.Command(program, "--conf-file="+file, "--output="+filepath.Join(dir, "log"), "--pid-file="+filepath.Join(dir, "pid"),
		"--stats-addr=127.0.0.1", fmt.Sprintf("--stats-port=%d", FreePort(tb))))
	Await(tb, "twemproxy takes connections", func() bool {
		conn, err := net.DialTimeout("tcp", p.addr, dialTimeout)
		return err == nil && conn.Close() == nil
	})
	return p
}

// Client returns a new client that closes when tb ends.
func (p *Twemproxy) Client(tb testing.TB) *redis.Client {
	return closeAtEnd(tb, newClient(p.addr, func(o *redis.Options) { o.Dialer = dialWithoutHello }))
}

// dialWithoutHello answers HELLO in place of the server, which would end the connection. go-redis goes on with RESP2 then.
func dialWithoutHello(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &withoutHello{Conn: conn}, nil
}

// withoutHello is a connection on which HELLO is the first request, as a client of go-redis makes it.
type withoutHello struct {
	net.Conn
	asked  bool
	answer strings.Reader
}

func (c *withoutHello) Write(request []byte) (int, error) {
	if c.asked || !strings.Contains(strings.ToLower(string(request[:min(len(request), 32)])), "\r\nhello\r\n") {
		return c.Conn.Write(request)
	}
	c.asked = true
	c.answer.Reset("-ERR unknown command 'HELLO'\r\n")
	return len(request), nil
}

func (c *withoutHello) Read(reply []byte) (int, error) {
	if c.answer.Len() > 0 {
		return c.answer.Read(reply)
	}
	return c.Conn.Read(reply)
}
