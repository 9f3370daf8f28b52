package locktest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// names asks for locks of names that are empty, too long, and longer than usual.
func names(b *bench) {
	k := b.open()
	held := b.lock(k)
	for _, name := range []string{"", strings.Repeat("x", 1<<20)} {
		_, err := k.Lock(patient(b), name)
		if err == nil || errors.Is(err, b.kind.NotAcquired) || len(err.Error()) > 200 {
			b.Errorf("a name of %d bytes: %.200v", len(name), err)
		}
		if name != "" && !strings.Contains(fmt.Sprint(err), " bytes, more than ") {
			b.Errorf("%.200v does not say the limit", err)
		}
	}
	for _, name := range []string{strings.Repeat("/", 900), "..", "}x", "a\x00b", "\xff", "%2F"} {
		l, err := k.TryLock(patient(b), name)
		switch {
		case err == nil:
			b.unlock(l)
		case !strings.Contains(err.Error(), "zero byte"):
			b.Errorf("%.20q: %v", name, err)
		}
	}
	expect.Equal(b, "the other lock is held", held.Context().Err(), nil)
	b.unlock(held)
}

// silentServer asks for a lock, and gives one up, while no member answers.
func silentServer(b *bench) {
	cfg := b.config()
	cfg.Timeout = time.Second
	k := b.kind.Open(b, b.server.Addr, cfg)
	l := b.lock(k)
	for _, m := range b.server.Members {
		m.Pause()
		defer m.Resume()
	}
	_, err := k.TryLock(patient(b), "y")
	b.late(err, `lock "y"`)
	b.late(l.Unlock(context.Background()), `unlock "x"`)
}

// within is the time that an error says an operation was given.
var within = regexp.MustCompile(`no answer within ([0-9.a-zµ]+)`)

// late checks the error of an operation that was given up after a second, or after more on a machine that stood still meanwhile.
func (b *bench) late(err error, operation string) {
	b.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		b.Errorf("%s: %v is no time-out", operation, err)
		return
	}
	if !strings.Contains(err.Error(), operation) {
		b.Errorf("%q does not say %q", err, operation)
	}
	said := within.FindStringSubmatch(err.Error())
	if said == nil {
		b.Errorf("%q does not say how long it waited", err)
		return
	}
	if waited, parseErr := time.ParseDuration(said[1]); parseErr != nil || waited < time.Second {
		b.Errorf("%q says %q, not a second or more", err, said[1])
	}
}
