package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// risky are commands that ask, by a part of their question.
func risky(prefix string) map[string][]string {
	return map[string][]string{
		"Invalidate everything under": {"--prefix", prefix, "invalidate", "--all"},
		"without the cache for 10m":   {"--prefix", prefix, "bypass", "10m"},
		"away from its holders?":      {"--lock-prefix", prefix, "locks", "revoke", "import"},
	}
}

// answered runs the command at a terminal where somebody gives the answer.
func answered(t *testing.T, answer io.Reader, args ...string) ran {
	t.Helper()
	var out, problems bytes.Buffer
	code := run(t.Context(), args, at(shared), answer, &out, &problems)
	return ran{code, out.String(), problems.String()}
}

func TestWhatManyNoticeIsDoneOnlyWhenSomebodySaysYes(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	locks, err := mutex.New(shared.Client(t), mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	keep(t, guard, "a")
	lease, err := locks.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	for question, args := range risky(prefix) {
		for _, no := range []string{"", "\n", "n\n", "yep\n", "no\ny\n"} {
			r := answered(t, strings.NewReader(no), args...)
			r.want(t, misused, question, prefix, "[y/N]", "nothing was done")
		}
		answered(t, nil, args...).want(t, misused, "--yes")
		ctl(t, at(shared), args...).want(t, misused, "--yes") // its standard input is /dev/null
	}
	expect.ErrorIs(t, lease.Context().Err())
	for question, args := range risky(prefix) {
		answered(t, strings.NewReader("y\n"), args...).want(t, done, question)
	}
	<-lease.Context().Done()
	gone(t, guard, "a")
	for _, args := range risky(prefix) {
		if r := ctl(t, at(shared), append(args, "--yes")...); strings.Contains(r.errors, "[y/N]") {
			t.Errorf("%q asks: %s", args, r.errors)
		}
	}
}

func TestWhatAScriptHasOnItsStandardInputIsNoAnswer(t *testing.T) {
	t.Parallel()
	cmd := command(t.Context(), at(shared), "--prefix", "test-"+rand.Text(), "invalidate", "--all")
	cmd.Stdin = strings.NewReader("y\n") // a pipe
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing was done") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheEndOfABypassAsksNobody(t *testing.T) {
	t.Parallel()
	answered(t, nil, "--prefix", "test-"+rand.Text(), "bypass", "0").want(t, done, "the cache is on")
}
