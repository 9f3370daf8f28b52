package memory

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conn is a connection to the engine. Write answers what it is given, at once; nobody else runs. Messages wait in it until
// they are read, as in the buffers of a server.
type conn struct {
	engine *engine

	mu       sync.Mutex
	asked    []byte // a command that was written in part
	out      bytes.Buffer
	channels map[string]struct{} // that it is subscribed to
	deadline time.Time           // of reads
	closed   bool

	changed chan struct{} // something of these did; size 1
}

// mostUnread is how many bytes may wait for a subscriber. One that does not read is cut off, as by Redis.
const mostUnread = 32 << 20

func newConn(e *engine) *conn {
	c := &conn{engine: e, channels: make(map[string]struct{}), changed: make(chan struct{}, 1)}
	e.opened(c)
	return c
}

// Write takes commands, and answers each that is whole.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, net.ErrClosed
	}
	c.asked = append(c.asked, p...)
	var commands [][]string
	for {
		args, size, err := parse(c.asked)
		if err != nil {
			c.mu.Unlock()
			return 0, err
		}
		if size == 0 {
			break
		}
		c.asked = c.asked[size:]
		commands = append(commands, args)
	}
	c.mu.Unlock()
	for _, args := range commands {
		c.run(args)
	}
	return len(p), nil
}

// run answers one command.
func (c *conn) run(args []string) {
	if len(args) == 0 {
		return
	}
	switch strings.ToUpper(args[0]) {
	case "SUBSCRIBE":
		for _, channel := range args[1:] {
			c.engine.subscribe(c, channel)
		}
	case "UNSUBSCRIBE":
		c.engine.unsubscribe(c, args[1:])
	case "PING":
		c.pong(args[1:])
	default:
		reply := c.engine.do(args)
		c.send(func(out *bytes.Buffer) { encode(out, reply) })
	}
}

// pong answers a PING, which is another thing to a subscriber.
func (c *conn) pong(args []string) {
	c.send(func(out *bytes.Buffer) {
		switch {
		case len(c.channels) > 0:
			encode(out, []any{"pong", strings.Join(args, "")})
		case len(args) > 0:
			encode(out, args[0])
		default:
			out.WriteString("+PONG\r\n")
		}
	})
}

// send adds something to what is to be read.
func (c *conn) send(write func(out *bytes.Buffer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	write(&c.out)
	if len(c.channels) > 0 && c.out.Len() > mostUnread {
		c.closed = true
		c.out.Reset()
	}
	c.tell()
}

func (c *conn) tell() {
	select {
	case c.changed <- struct{}{}:
	default: // who reads will look
	}
}

// Read waits for something to read.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, deadline, err := c.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		c.await(deadline)
	}
}

func (c *conn) take(p []byte) (n int, deadline time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.out.Len() > 0:
		n, err = c.out.Read(p)
	case c.closed:
		err = io.EOF
	case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		err = os.ErrDeadlineExceeded
	}
	return n, c.deadline, err
}

func (c *conn) await(deadline time.Time) {
	if deadline.IsZero() {
		<-c.changed
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-c.changed:
	case <-timer.C:
	}
}

// Close ends the connection. The end of the last one is the end of the engine.
func (c *conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.out.Reset()
	c.tell()
	c.mu.Unlock()
	c.engine.left(c)
	if again {
		return net.ErrClosed
	}
	return nil
}

// Texts are the keys with a text, in their order, for the simulation, which has some of them evicted: no command lists keys.
func (c *conn) Texts() (keys []string) {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	c.engine.begin()
	for key, it := range c.engine.keys.items {
		if it.kind == str {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// SetReadDeadline bounds reads, also one that waits.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	c.tell()
	return nil
}

// SetDeadline bounds reads: writes do not wait.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr is no address.
func (c *conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr is no address.
func (c *conn) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return Addr }
func (address) String() string  { return Addr }

var errProtocol = errors.New("memory: this is no command")

// parse reads a command. size is how many bytes it takes; 0: there is more to come.
func parse(raw []byte) (args []string, size int, err error) {
	in := bufio.NewReader(bytes.NewReader(raw)) // of commands of some bytes: SUBSCRIBE, HELLO
	n, size, err := header(in, '*')
	for i := 0; i < n && size > 0 && err == nil; i++ {
		length, more, failed := header(in, '$')
		if err = failed; more == 0 || err != nil {
			return nil, 0, err
		}
		size += more
		if size+length+2 > len(raw) {
			return nil, 0, nil
		}
		args = append(args, string(raw[size:size+length]))
		size += length + 2
		_, _ = in.Discard(length + 2) // it is there
	}
	return args, size, err
}

// header reads a line with a number behind its kind, and returns how long it is; 0: it is not there as yet.
func header(in *bufio.Reader, kind byte) (n, size int, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, 0, nil //nolint:nilerr // the rest comes with the next write
	}
	if line[0] != kind || len(line) < 4 {
		return 0, 0, errProtocol
	}
	if n, err = strconv.Atoi(line[1 : len(line)-2]); err != nil || n < 0 {
		return 0, 0, errProtocol
	}
	return n, len(line), nil
}

// encode writes a reply as RESP has it.
func encode(out *bytes.Buffer, reply any) {
	switch reply := reply.(type) {
	case nil:
		out.WriteString("$-1\r\n")
	case error:
		out.WriteString("-" + reply.Error() + "\r\n")
	case int64:
		out.WriteString(":" + strconv.FormatInt(reply, 10) + "\r\n")
	case string:
		out.WriteString("$" + strconv.Itoa(len(reply)) + "\r\n" + reply + "\r\n")
	case []any:
		out.WriteString("*" + strconv.Itoa(len(reply)) + "\r\n")
		for _, part := range reply {
			encode(out, part)
		}
	}
}
