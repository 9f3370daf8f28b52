package locktest

import (
	"context"
	"errors"
	"strings"
	"time"
)

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

// late checks the error of an operation that was given up after a second.
func (b *bench) late(err error, operation string) {
	b.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		b.Errorf("%s: %v is no time-out", operation, err)
		return
	}
	for _, part := range []string{operation, "no answer within 1s"} {
		if !strings.Contains(err.Error(), part) {
			b.Errorf("%q does not say %q", err, part)
		}
	}
}
