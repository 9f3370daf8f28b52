package redistest_test

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestServerAnswersWhenStartReturns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory", "64mb")
	rdb := s.Client(t)
	if got := rdb.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != strconv.Itoa(64<<20) {
		t.Errorf("maxmemory = %q, the argument did not reach the server", got)
	}
	if want := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())); s.Addr() != want {
		t.Errorf("Addr() = %q, want %q", s.Addr(), want)
	}
}

func TestServerForMainServesTests(t *testing.T) {
	t.Parallel()
	if err := shared.Client(t).Set(t.Context(), t.Name(), "v", 0).Err(); err != nil {
		t.Error(err)
	}
}

func TestSharedServersAreTheSameForAllAndNotOneAnother(t *testing.T) {
	t.Parallel()
	first, more := redistest.SharedServers(t, 2), redistest.SharedServers(t, 3)
	set(t, first[1].Client(t), t.Name())
	for i, want := range []int64{0, 1, 0} {
		if n, err := more[i].Client(t).Exists(t.Context(), t.Name()).Result(); err != nil || n != want {
			t.Errorf("server %d: EXISTS = %d, %v; want %d", i, n, err, want)
		}
	}
	if first[0].Addr() != shared.Addr() {
		t.Error("the first is not that of Main")
	}
}

func TestServerClientTakesTweaks(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t, func(o *redis.Options) { o.ClientName = "tweaked" })
	if got := rdb.ClientGetName(t.Context()).Val(); got != "tweaked" {
		t.Errorf("client name = %q", got)
	}
}

func TestServerIsGoneWhenKillReturnsAndBackWhenRestartReturns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t, once)
	set(t, rdb, "k")
	s.Kill()
	if err := rdb.Get(t.Context(), "k").Err(); err == nil {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	if n, err := s.Client(t).Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("EXISTS after a restart = %d, %v; want an empty server", n, err)
	}
}

// told is a test that hears of errors, and has failed for nobody.
type told struct {
	testing.TB
	cleanups []func()
	errs     []any
}

func (t *told) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *told) Error(err ...any) { t.errs = append(t.errs, err...) }

func TestAServerThatEndsByItselfFailsItsTest(t *testing.T) {
	t.Parallel()
	for command, fails := range map[string]bool{"ping": false, "shutdown": true} {
		other := &told{TB: t}
		s := redistest.Start(other)
		pid, err := strconv.Atoi(s.Info("server")["process_id"])
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Client(t).Do(t.Context(), command).Err() // there may be no answer
		redistest.Await(t, "it has done so", func() bool { return fails == errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		for _, f := range other.cleanups {
			f()
		}
		if got := len(other.errs) > 0; got != fails {
			t.Errorf("after %s: %v", command, other.errs)
		}
	}
}

func TestServerRestartEndsARunningServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	before := s.Info("server")["run_id"]
	s.Restart()
	if after := s.Info("server")["run_id"]; before == "" || after == before {
		t.Errorf("run_id %q became %q", before, after)
	}
}

func TestServerIsSilentWhilePausedAndGoesOnAfterResume(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hasty := s.Client(t, once, func(o *redis.Options) { o.ReadTimeout = time.Second })
	set(t, hasty, "k")
	s.Pause()
	if err := hasty.Get(t.Context(), "k").Err(); !isTimeout(err) {
		t.Errorf("GET from a paused server: %v, want a timeout", err)
	}
	s.Resume()
	if got, err := s.Client(t).Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("GET after Resume = %q, %v", got, err)
	}
}

func TestServerKillReachesAPausedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	s.Kill()
}

func TestServerCommandsCountsWhatScriptsRun(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	set(t, rdb, "k")
	before := s.Commands()
	if err := rdb.Eval(t.Context(), "redis.call('get', KEYS[1]) return redis.call('get', KEYS[1])", []string{"k"}).Err(); err != nil {
		t.Fatal(err)
	}
	after := s.Commands()
	if evals, gets := after["eval"]-before["eval"], after["get"]-before["get"]; evals != 1 || gets != 2 {
		t.Errorf("counted %d EVAL and %d GET, want 1 and 2", evals, gets)
	}
}

func TestServerReadsCountsRoundTripsButNotLooking(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	set(t, rdb, "k")
	before := s.Reads()
	for range 5 {
		set(t, rdb, "k")
		s.Commands()
		s.Info("memory")
	}
	if got := s.Reads() - before; got != 5 {
		t.Errorf("Reads went up by %d for 5 commands", got)
	}
}

func TestStartNamesWhatToInstallWithoutAServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // not parallel: the others need PATH
	tb := &fatalTB{TB: t}
	tb.run(func() { redistest.Start(tb) })
	if want := "apt-get install redis-server"; !tb.failedWith(want) {
		t.Errorf("Start failed with %q, want it to say %q", tb.message, want)
	}
}

func TestStartShowsTheLogOfAServerThatRefusesItsArguments(t *testing.T) {
	t.Parallel()
	tb := &fatalTB{TB: t}
	tb.run(func() { redistest.Start(tb, "--no-such-option", "1") })
	if want := "no-such-option"; !tb.failedWith(want) {
		t.Errorf("Start failed with %q, want the log that names %q", tb.message, want)
	}
}

func TestAwaitReturnsOnceTheConditionHolds(t *testing.T) {
	t.Parallel()
	asked := 0
	redistest.Await(t, "a third question", func() bool { asked++; return asked == 3 })
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// once makes a client that reports the first failure.
func once(o *redis.Options) { o.MaxRetries = -1 }

func set(t *testing.T, rdb redis.Cmdable, key string) {
	t.Helper()
	if err := rdb.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func isTimeout(err error) bool {
	var nerr net.Error
	return errors.As(err, &nerr) && nerr.Timeout()
}

// fatalTB is a testing.TB on which Fatal ends only run, so that a test can look at it.
type fatalTB struct {
	testing.TB
	message string
}

// run calls f and returns when f has returned or failed.
func (f *fatalTB) run(call func()) {
	done := make(chan struct{})
	go func() { // owner: run; stops when call returns or fails; run waits for done
		defer close(done)
		call()
	}()
	<-done
}

func (f *fatalTB) Fatal(args ...any) {
	f.message = fmt.Sprint(args...)
	runtime.Goexit()
}

func (f *fatalTB) failedWith(part string) bool { return strings.Contains(f.message, part) }

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
