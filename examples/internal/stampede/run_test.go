package stampede

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

// nobody opens no shop.
func nobody(*redis.Client, *backends.ProductDB, string, time.Duration) (Shop, error) {
	return nil, errors.New("opened after the interrupt")
}

// onWrite is a writer that calls itself.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	if code := Quickstart(Contestant{Name: "none", Open: nobody}).Execute(ctx, nil, onWrite(interrupt), io.Discard); code != program.Interrupted {
		t.Errorf("exit code %d, want %d", code, program.Interrupted)
	}
}
