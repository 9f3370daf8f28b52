package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/wallclock"
)

const childVar = "REDISTEST_CHILD"

// Process is a child process that runs one test.
type Process struct {
	tb     testing.TB
	name   string
	dir    string // the child's temporary directory, as one that is killed does not clean up
	proc   *process
	stdin  io.WriteCloser
	stdout *lines
	stderr bytes.Buffer // read it when proc has ended
	clock  wallclock.Offset
}

// Child runs the top-level test with this name in a process of its own, where IsChild says so; name is often tb.Name().
// env are more variables of its environment: "KEY=value". The child dies with the test, however that ends.
//
// In the child, the test talks to its parent with os.Stdin and os.Stdout, a line at a time.
func Child(tb testing.TB, name string, env ...string) *Process {
	tb.Helper()
	p, err := startChild(tb, name, env)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// InChild reports whether this process was started by Child: it needs none of the servers that tests share.
func InChild() bool { return os.Getenv(childVar) != "" }

// IsChild reports whether tb runs in a process that Child started for it.
func IsChild(tb testing.TB) bool { return os.Getenv(childVar) == tb.Name() }

func startChild(tb testing.TB, name string, env []string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("redistest: find the test binary: %w", err)
	}
	dir, err := os.MkdirTemp("", "redistest-") //nolint:usetesting // removed when the child has ended, not before
	if err != nil {
		return nil, fmt.Errorf("redistest: child: %w", err)
	}
	p := &Process{tb: tb, name: name, dir: dir}
	cmd := exec.Command(self, "-test.run=^"+regexp.QuoteMeta(name)+"$", "-test.count=1")
	cmd.Env = append(append(os.Environ(), "TMPDIR="+dir, childVar+"="+name), env...)
	cmd.Stderr = &p.stderr
	if err := p.start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("redistest: start %s: %w", self, err), os.RemoveAll(dir))
	}
	tb.Cleanup(p.close)
	return p, nil
}

func (p *Process) start(cmd *exec.Cmd) error {
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, in, err := os.Pipe() // not StdoutPipe, which ends with the child, whatever was not read yet
	if err != nil {
		return err
	}
	cmd.Stdout = in
	p.proc, err = startProcess(cmd)
	_ = in.Close() // the child has its own copy
	if err != nil {
		_ = out.Close() // nothing was read
		return err
	}
	p.stdout = readLines(out)
	return nil
}

// close ends the child, and shows what it wrote if the test has failed.
func (p *Process) close() {
	if err := p.proc.kill(); err != nil {
		p.tb.Error(err)
	}
	p.stdout.close()
	if p.tb.Failed() {
		p.tb.Logf("child %s: %v\n%s%s", p.name, p.proc.err, p.stdout.all(), &p.stderr)
	}
	_ = os.RemoveAll(p.dir) // a process of the child's may be about to die in it
}

// Kill ends the child with SIGKILL and returns when it has ended.
func (p *Process) Kill() { p.must(p.proc.kill()) }

// Pause stops the child with SIGSTOP.
func (p *Process) Pause() { p.must(p.proc.pause()) }

// Resume lets a paused child go on.
func (p *Process) Resume() { p.must(p.proc.signal(syscall.SIGCONT)) }

// SetClock sets the child's wall clock to so much after the machine's. The error says that this cannot be done here.
func (p *Process) SetClock(ahead time.Duration) error {
	p.clock.Ahead = ahead
	return wallclock.Set(p.clock, p.stop, p.Resume)
}

// Suspend stops the child for d, while its monotonic clock stands still, as if its machine slept; like SetClock.
func (p *Process) Suspend(d time.Duration) (err error) {
	p.clock, err = wallclock.Suspend(p.clock, d, p.stop, p.Resume)
	return err
}

func (p *Process) stop() (pids []int) {
	p.Pause()
	return []int{p.proc.cmd.Process.Pid}
}

// Wait returns when the child has ended, with an error unless its test has passed.
func (p *Process) Wait() error {
	<-p.proc.done
	return p.proc.err
}

// ReadLine returns the next line the child wrote to its standard output, or io.EOF after the last one. A child that ends
// by itself writes a line of the testing package at the end, such as PASS.
func (p *Process) ReadLine(ctx context.Context) (string, error) { return p.stdout.next(ctx) }

// Expect fails the test unless the next line the child writes, within a minute, is want.
func (p *Process) Expect(want string) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	line, err := p.ReadLine(ctx)
	if err != nil {
		p.tb.Fatalf("%v, waiting for %q from the child", err, want)
	}
	if line != want {
		p.tb.Errorf("the child: %v, want %v", line, want)
	}
}

// WriteLine sends a line to the child's standard input.
func (p *Process) WriteLine(line string) {
	_, err := io.WriteString(p.stdin, line+"\n")
	p.must(err)
}

func (p *Process) must(err error) {
	if err != nil {
		p.tb.Helper()
		p.tb.Fatal(err)
	}
}
