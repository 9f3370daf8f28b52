package backends

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Commands counts what clients ask of Redis, where it leaves them for the network: a command in a pipeline counts like
// any other, a script counts as one, and so does what opens a connection. The embedded Redis keeps no statistics; and
// hooks of a client do not see what is asked through its WithTimeout.
type Commands struct{ sent atomic.Int64 }

// Sent returns how many were asked so far.
func (c *Commands) Sent() int64 { return c.sent.Load() }

// count makes connections of a client count.
func (c *Commands) count(options *redis.Options) {
	dial := redis.NewDialer(options)
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, commands: c}, nil
	}
}

// countedConn reads along what is written to a connection. A request is an array of strings: *2\r\n$3\r\nGET\r\n$1\r\nk\r\n.
type countedConn struct {
	net.Conn
	commands *Commands
	line     []byte // the beginning of a line whose rest has not been written yet
	skip     int    // how much of a string is still to come
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.scan(p)
	return c.Conn.Write(p)
}

func (c *countedConn) scan(p []byte) {
	for len(p) > 0 {
		if n := min(c.skip, len(p)); n > 0 {
			c.skip, p = c.skip-n, p[n:]
			continue
		}
		rest, after, whole := bytes.Cut(p, []byte("\n"))
		c.line = append(c.line, rest...)
		if !whole {
			return
		}
		switch kind, size := c.line[0], string(bytes.TrimRight(c.line[1:], "\r")); kind {
		case '*':
			c.commands.sent.Add(1)
		case '$':
			length, _ := strconv.Atoi(size) // what go-redis writes is a number
			c.skip = length + len("\r\n")
		}
		c.line, p = c.line[:0], after
	}
}
