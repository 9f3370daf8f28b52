package redistest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

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

// FreePort is a port of 127.0.0.1 that is free now.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	return port
}
