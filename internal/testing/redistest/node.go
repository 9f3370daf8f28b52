package redistest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	startTimeout = 20 * time.Second // for a server to answer its first PING, on a loaded machine
	portAttempts = 20
)

// serverVariable names another server than the redis-server on PATH, such as valkey-server: a program on PATH, or a file.
const serverVariable = "REDISTEST_SERVER"

var (
	errNoServer = errors.New("redistest: no redis-server on PATH, and none named by " + serverVariable + ": install it " +
		"(Debian/Ubuntu: apt-get install redis-server, macOS: brew install redis)")
	errPortTaken = errors.New("redistest: port taken")
)

// arguments makes the arguments of redis-server for a port; dir is the server's directory.
type arguments func(port int, dir string) ([]string, error)

// node is one redis-server on a port and in a directory it keeps when it is restarted.
type node struct {
	args    arguments
	dir     string
	port    int
	release func() error // gives the port up

	mu  sync.Mutex
	now *run // the newest run
}

// run is one life of a node, from a start to a kill.
type run struct {
	proc    *process
	control *redis.Client // one connection, kept, so that looking at the counters hardly moves them
	looks   atomic.Int64  // INFO commands sent by control
	trace   *trace        // nil: nobody asked for one
}

// launch starts a node on a free port.
func launch(args arguments) (*node, error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	n := &node{args: args, dir: dir}
	for range portAttempts {
		if n.port, n.release, err = takePort(); err != nil {
			break
		}
		if err = n.start(); err == nil {
			return n, nil
		}
		if err = errors.Join(err, n.release()); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// start begins a run and returns when the server answers.
func (n *node) start() error {
	bin, err := exec.LookPath(cmp.Or(os.Getenv(serverVariable), "redis-server"))
	if err != nil {
		return fmt.Errorf("%w: %w", errNoServer, err)
	}
	args, err := n.args(n.port, n.dir)
	if err != nil {
		return err
	}
	log, err := os.Create(n.logFile())
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy

	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, log, log
	proc, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("redistest: start %s: %w", bin, err)
	}
	r := &run{proc: proc, control: newClient(n.addr(), func(o *redis.Options) {
		o.ClientName, o.PoolSize = "redistest", 1
	})}
	if err := n.ready(r); err != nil {
		return errors.Join(err, r.stop())
	}
	if r.trace, err = startTrace(n.addr(), os.Stderr); err != nil {
		return errors.Join(err, r.stop())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = r
	return nil
}

// ready waits until the server answers. It asks for the process id, because on a port lost to another process it
// may be that process' server that answers.
func (n *node) ready(r *run) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return await(ctx, func() error {
		if r.proc.ended() {
			return final{n.whyEnded()}
		}
		if err := n.listens(); err != nil {
			return err
		}
		info, err := r.info(ctx, "server")
		if err != nil {
			return err
		}
		if want := strconv.Itoa(r.proc.cmd.Process.Pid); info["process_id"] != want {
			return fmt.Errorf("redistest: process %s answers on %s, not %s", info["process_id"], n.addr(), want)
		}
		return nil
	})
}

// listens returns nil when the port takes connections. A client that is refused one does not try again for a second.
func (n *node) listens() error {
	conn, err := net.DialTimeout("tcp", n.addr(), dialTimeout)
	if err != nil {
		return err
	}
	return conn.Close()
}

// whyEnded reads the log of a server that has ended by itself.
func (n *node) whyEnded() error {
	log, err := os.ReadFile(n.logFile())
	if err != nil {
		return err
	}
	if bytes.Contains(bytes.ToLower(log), []byte("address already in use")) {
		return fmt.Errorf("%w: %s", errPortTaken, n.addr())
	}
	return fmt.Errorf("redistest: redis-server ended:\n%s", log)
}

// restart begins a new run on the same port. A child of the killed server, which saves, may have the port a moment longer.
func (n *node) restart() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := n.current().stop(); err != nil {
		return err
	}
	return await(ctx, func() error {
		err := n.start()
		if err != nil && !errors.Is(err, errPortTaken) {
			return final{err}
		}
		return err
	})
}

// close ends the server and removes its directory. It is an error if the server has ended by itself.
func (n *node) close() error {
	r := n.current()
	err := r.stop()
	if !r.proc.killed() {
		err = errors.Join(err, n.whyEnded())
	}
	return errors.Join(err, n.release(), os.RemoveAll(n.dir))
}

func (n *node) current() *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

func (n *node) addr() string { return local(n.port) }

func (n *node) logFile() string { return filepath.Join(n.dir, "redis.log") }

// stop kills the server. It may be called again.
func (r *run) stop() error {
	err := r.proc.kill()
	r.trace.close()
	if cerr := r.control.Close(); cerr != nil && !errors.Is(cerr, redis.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	return err
}
