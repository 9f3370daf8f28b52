package wallclock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A clock in another process tells the time whenever it gets a line: what it has, and how much passed since its start.
func TestAProcessThatTellsTheTime(t *testing.T) {
	if os.Getenv("WALLCLOCK_CHILD") == "" {
		t.Skip("it is for a child process")
	}
	start := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		at := time.Now()
		fmt.Println(at.UnixNano(), int64(at.Sub(start)))
	}
}

// child is a process that tells the time.
type child struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

func startChild(t *testing.T) child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessThatTellsTheTime$")
	cmd.Env = append(os.Environ(), "WALLCLOCK_CHILD=1")
	in, _ := cmd.StdinPipe() // Start fails if there is none
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it ends with its input
	})
	return child{cmd, in, bufio.NewScanner(out)}
}

// tell has it tell the real time, and how much passed since its start, in nanoseconds.
func (c child) tell(t *testing.T) (wall, passed int64) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil || !c.lines.Scan() {
		t.Fatal("the process is gone")
	}
	if _, err := fmt.Sscan(c.lines.Text(), &wall, &passed); err != nil {
		t.Fatal(err)
	}
	return wall, passed
}

func TestTheClockOfAProcessIsSetWhileItRuns(t *testing.T) {
	p := startChild(t)
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, 0} {
		setClock(t, p.cmd.Process, ahead)
		before := time.Now()
		wall, passed := p.tell(t)
		if off := time.Unix(0, wall).Sub(before) - ahead; off < -time.Minute || off > time.Minute {
			t.Errorf("set to %v, it is off by %v", ahead, off)
		}
		if passed > int64(time.Minute) {
			t.Errorf("set to %v, the monotonic clock has leapt by %v", ahead, time.Duration(passed))
		}
	}
}

func TestAProcessThatIsSuspendedHasLessMonotonicTimeThanRealTime(t *testing.T) {
	p := startChild(t)
	began, before := p.tell(t)
	stop, goOn := signals(p.cmd.Process)
	const slept = 2 * time.Second
	o := Offset{Ahead: time.Hour}
	for range 2 {
		var err error
		o, err = Suspend(o, slept, stop, goOn)
		possible(t, err)
	}
	if o != (Offset{time.Hour, 2 * slept}) {
		t.Errorf("the offset is %+v", o)
	}
	wall, passed := p.tell(t)
	hidden := time.Duration(wall - began - passed + before)
	if hidden -= o.Ahead + 2*slept; hidden < -time.Second || hidden > time.Second {
		t.Errorf("off by %v", hidden)
	}
}

func setClock(t *testing.T, p *os.Process, ahead time.Duration) {
	t.Helper()
	stop, goOn := signals(p)
	possible(t, Set(Offset{Ahead: ahead}, stop, goOn))
}

func signals(p *os.Process) (stop func() []int, goOn func()) {
	return func() []int {
		_ = p.Signal(syscall.SIGSTOP) // Set says if it did not work
		return []int{p.Pid}
	}, func() { _ = p.Signal(syscall.SIGCONT) } // the test would hang
}

func possible(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
