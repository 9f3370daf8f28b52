package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
)

// nobody opens no shop.
func nobody(*redis.Client, *database, string, time.Duration) (shop, error) {
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
	if code := compared(contestant{Name: "none", Open: nobody}).Execute(ctx, nil, onWrite(interrupt), io.Discard); code != program.Interrupted {
		t.Errorf("exit code %d, want %d", code, program.Interrupted)
	}
}
