package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/leaks"
)

// Shared is a server for the examples of a package, which have no testing.TB. It starts when it is first asked for.
type Shared struct {
	start func(tb testing.TB) (addr string)
	once  sync.Once
	addr  string
	tb    stand
}

// Share returns a Shared that start starts.
func Share(start func(tb testing.TB) (addr string)) *Shared { return &Shared{start: start} }

// Addr is how to reach it.
func (s *Shared) Addr() string {
	s.once.Do(func() { s.addr = s.start(&s.tb) })
	return s.addr
}

// Main is the TestMain of the package. It fails tests that leave goroutines behind.
func (s *Shared) Main(m *testing.M) { leaks.Main(run{m, s}) }

type run struct {
	tests  *testing.M
	shared *Shared
}

// Run runs the tests, and stops the server before anybody looks for goroutines.
func (r run) Run() (code int) {
	defer r.shared.tb.end()
	return r.tests.Run()
}

// Try has start start servers outside of a test. The error is what would fail the test, as when a server is missing. The caller calls
// end, with an error too.
func Try(start func(tb testing.TB)) (end func(), err error) {
	tb := new(stand)
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%v", why)
		}
	}()
	end = tb.end
	start(tb)
	return end, nil
}

// stand stands in for a test that cannot fail: it panics.
type stand struct {
	testing.TB // nil: what is not below is not called

	mu       sync.Mutex // servers may be started side by side
	cleanups []func()
}

func (s *stand) Helper()                           {}
func (s *stand) Failed() bool                      { return false }
func (s *stand) Logf(string, ...any)               {}
func (s *stand) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (s *stand) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (s *stand) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (s *stand) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *stand) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// Processor is how much time of processors its processes have used, also ended ones; 0 elsewhere than on Linux.
func (d *daemon) Processor() time.Duration { return processorOf(d.Pid()) }

// processorOf adds up a process and its children.
func processorOf(pid int) (used time.Duration) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it has ended, and its parent has its time
	}
	const ticks = 100 // a second, on all Linux
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	for _, i := range []int{11, 12, 13, 14} { // its own, and of children that have ended: in user mode and in the kernel
		if i < len(fields) {
			n, _ := strconv.Atoi(fields[i]) // it is a number
			used += time.Duration(n) * time.Second / ticks
		}
	}
	for _, child := range children(pid) {
		used += processorOf(child)
	}
	return used
}
