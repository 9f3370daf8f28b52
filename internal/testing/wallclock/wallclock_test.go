package wallclock

import (
	"bufio"
	"errors"
	"fmt"
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
		fmt.Println(time.Now().Unix(), int64(time.Since(start)/time.Second))
	}
}

func TestTheClockOfAProcessIsSetWhileItRuns(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessThatTellsTheTime$")
	cmd.Env = append(os.Environ(), "WALLCLOCK_CHILD=1")
	in, _ := cmd.StdinPipe() // Start fails if there is none
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() //nolint:errcheck // it ends with its input
	defer in.Close()
	lines := bufio.NewScanner(out)
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, 0} {
		setClock(t, cmd.Process, ahead)
		before := time.Now()
		if _, err := fmt.Fprintln(in); err != nil || !lines.Scan() {
			t.Fatal("the process is gone")
		}
		var wall, passed int64
		if _, err := fmt.Sscan(lines.Text(), &wall, &passed); err != nil {
			t.Fatal(err)
		}
		if off := time.Unix(wall, 0).Sub(before) - ahead; off < -time.Minute || off > time.Minute {
			t.Errorf("set to %v, it is off by %v", ahead, off)
		}
		if passed > 60 {
			t.Errorf("set to %v, the monotonic clock has leapt by %d s", ahead, passed)
		}
	}
}

func setClock(t *testing.T, p *os.Process, ahead time.Duration) {
	t.Helper()
	err := Set(ahead, func() []int {
		_ = p.Signal(syscall.SIGSTOP) // Set says if it did not work
		return []int{p.Pid}
	}, func() {
		_ = p.Signal(syscall.SIGCONT) // the test would hang
	})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
