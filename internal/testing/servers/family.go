// Package servers starts servers other than Redis for tests: on free ports of 127.0.0.1 or on sockets, with their data
// in directories of their own. They end with the test. A missing server fails the test.
package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/wallclock"
)

// patience is how long a server may take to start on a machine that has much to do.
const patience = 2 * time.Minute

// daemon is a server that can be started again. Its processes are the one that was started and its children.
type daemon struct {
	*redistest.Daemon

	tb      testing.TB
	command func() *exec.Cmd
	ready   func() bool
	crash   syscall.Signal
	stopped []int
}

// Start starts it, and returns when it answers.
func (d *daemon) Start() {
	d.tb.Helper()
	d.begin()
	d.await()
}

func (d *daemon) begin() {
	d.tb.Helper()
	d.Daemon = redistest.Serve(d.tb, d.command())
	d.tb.Cleanup(d.Kill) // before Serve's
}

func (d *daemon) await() {
	d.tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !d.ready(); <-tick.C {
		select {
		case <-d.Ended():
			d.tb.Fatalf("the server has ended: %s", d.command().Path)
		default:
		}
		if time.Now().After(deadline) {
			d.tb.Fatalf("the server does not answer: %s", d.command().Path)
		}
	}
}

// Kill lets it crash, and returns when it has ended.
func (d *daemon) Kill() {
	d.Resume()
	d.Signal(d.crash)
	<-d.Ended()
}

// Pause stops its processes.
func (d *daemon) Pause() {
	d.Daemon.Pause()
	d.stopped = children(d.Pid())
	for _, pid := range d.stopped {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
	}
}

// Resume lets them go on.
func (d *daemon) Resume() {
	for _, pid := range d.stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
	}
	d.stopped = nil
	d.Signal(syscall.SIGCONT)
}

// SetClock sets its wall clock to so much after the machine's. The error says that this cannot be done here.
func (d *daemon) SetClock(ahead time.Duration) error {
	return wallclock.Set(wallclock.Offset{Ahead: ahead}, func() []int {
		d.Pause()
		return append(d.stopped, d.Pid())
	}, d.Resume)
}

// lose removes data of a daemon that has ended.
func (d *daemon) lose(data string) {
	d.tb.Helper()
	if err := os.RemoveAll(data); err != nil {
		d.tb.Fatal(err)
	}
}

// children returns the children of a process, on Linux.
func children(pid int) (all []int) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // elsewhere there is none
	for _, field := range strings.Fields(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// find looks for a command where Debian hides servers, too.
func find(tb testing.TB, command string, places ...string) string {
	tb.Helper()
	if path, err := exec.LookPath(command); err == nil {
		return path
	}
	for _, place := range places {
		if paths, _ := filepath.Glob(filepath.Join(place, command)); len(paths) > 0 { // the patterns are good ones
			return slices.Max(paths)
		}
	}
	tb.Fatalf("there is no %s: make test-consensus installs it", command)
	return ""
}

// directory is a new one whose path is short, as a socket's has to be.
func directory(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "srv-") //nolint:usetesting // its path has to fit into a socket's address
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in the temporary directory
	return dir
}

// unprivileged is whom servers run as that refuse to be root; the directory is theirs then.
func unprivileged(tb testing.TB, dir string) *syscall.SysProcAttr {
	tb.Helper()
	if os.Getuid() != 0 {
		return new(syscall.SysProcAttr)
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		tb.Fatal(err)
	}
	uid, _ := strconv.ParseUint(nobody.Uid, 10, 32) // numbers, on every Unix
	gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		tb.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
