package redistest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// process is a started child that dies with this process, however this process dies.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended and was waited for
	err  error         // what Wait returned; read it after done
}

// startProcess starts cmd.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started) // owner: process; stops when the child ends; kill waits for it
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run keeps its thread until the child has ended: Linux ties the child's life to the thread that started it, and Go
// ends idle threads.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	release, err := guard(p.cmd.Process.Pid)
	if err != nil {
		_ = p.cmd.Process.Kill() // it may have ended by itself
	}
	started <- err
	p.err = p.cmd.Wait()
	release()
	close(p.done)
}

// signal sends sig; a child that has ended already is not an error.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// pause stops the child and returns when none of its threads runs any more, which takes a moment.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	return await(ctx, func() error {
		if p.ended() || stopped(p.cmd.Process.Pid) {
			return nil
		}
		return errors.New("redistest: a process goes on after SIGSTOP")
	})
}

// kill ends the child with SIGKILL, which reaches a stopped process too, and waits for it.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// ended reports whether the child has ended.
func (p *process) ended() bool { return closed(p.done) }

// killed reports whether a child that has ended was killed, rather than having ended by itself.
func (p *process) killed() bool {
	status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return is && status.Signal() == syscall.SIGKILL
}

// Daemon is a server that is no Redis, in a process that dies with the test.
type Daemon struct {
	tb   testing.TB
	proc *process
	log  bytes.Buffer // read it when proc has ended
}

// Serve starts the command, and kills it at the end of the test. If the test has failed, it shows the output.
func Serve(tb testing.TB, cmd *exec.Cmd) *Daemon {
	tb.Helper()
	d := &Daemon{tb: tb}
	cmd.Stdout, cmd.Stderr = &d.log, &d.log
	var err error
	if d.proc, err = startProcess(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		d.Kill()
		if tb.Failed() {
			tb.Logf("%s: %v\n%s", cmd.Path, d.proc.err, d.log.Bytes()[max(0, d.log.Len()-8<<10):])
		}
	})
	return d
}

// Kill ends it with SIGKILL and returns when it has ended.
func (d *Daemon) Kill() { d.must(d.proc.kill()) }

// Pause stops it with SIGSTOP and returns when none of its threads runs.
func (d *Daemon) Pause() { d.must(d.proc.pause()) }

// Signal sends it a signal.
func (d *Daemon) Signal(sig os.Signal) { d.must(d.proc.signal(sig)) }

// Pid is its process.
func (d *Daemon) Pid() int { return d.proc.cmd.Process.Pid }

// Ended is closed when it has ended.
func (d *Daemon) Ended() <-chan struct{} { return d.proc.done }

func (d *Daemon) must(err error) {
	if err != nil {
		d.tb.Helper()
		d.tb.Error(err)
	}
}

// FreePort is a port of 127.0.0.1 that no other test has until tb ends.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, release, err := takePort()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := release(); err != nil {
			tb.Error(err)
		}
	})
	return port
}
