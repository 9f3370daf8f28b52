package consistency

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	processes = 3
	readers   = 8 // in each process
	writers   = 4
)

func TestChildThatReadsAndWrites(t *testing.T) {
	if redistest.IsChild(t) {
		readAndWrite(t)
	}
}

// readAndWrite is what a child does until the parent stops it.
func readAndWrite(t *testing.T) {
	c := openCache(t, os.Getenv("KIND"), os.Getenv("ADDR"), openRows(t, os.Getenv("DATABASE_URL")))
	log, err := os.OpenFile(os.Getenv("LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() }) // every line has been written by then
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { // owner: the test; stop: a line from the parent, or its end; joined below
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		cancel()
	})
	w := &worker{cache: c, log: log}
	for range readers { // owner: the test; stop: ctx; joined below
		all.Go(func() { w.repeat(ctx, 0, w.read) })
	}
	for i := range writers { // owner: the test; stop: ctx; joined below
		all.Go(func() { w.repeat(ctx, i, w.write) })
	}
	all.Wait()
}

type worker struct {
	cache
	log *os.File
}

// repeat lets each operation end in its own time.
func (w *worker) repeat(ctx context.Context, who int, operation func(ctx context.Context, who, k int)) {
	longest := 5 * time.Second
	if os.Getenv("KIND") == "patient" {
		longest = redistest.Patience
	}
	for ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), longest)
		operation(ctx, who, rand.N(keys))
		cancel()
	}
}

func (w *worker) read(ctx context.Context, who, k int) {
	called := now()
	if version, err := w.get(ctx, keyOf(k)); err == nil {
		w.note(event{"get", who, k, version, called, now()})
	}
}

func (w *worker) write(ctx context.Context, who, k int) {
	_, puts := w.cache.(guarded)
	called, begun, put := now(), false, puts && rand.N(2) == 0
	version, err := w.update(ctx, keyOf(k), put, func() {
		begun = true
		w.note(event{"begun", who, k, 0, called, now()})
	})
	switch {
	case err == nil:
		w.note(event{"updated", who, k, version, called, now()})
		if put {
			w.note(event{"put", who, k, version, called, now()})
		}
	case begun:
		w.note(event{"failed", who, k, version, called, now()})
		fmt.Fprintln(os.Stderr, keyOf(k), err) // shown if the test fails
	}
}

// now is the clock that all processes share.
func now() int64 { return time.Now().UnixNano() }

// note writes a line in one call, so that a process that is killed leaves whole lines.
func (w *worker) note(e event) {
	_, _ = fmt.Fprintln(w.log, e.kind, e.who, e.key, e.version, e.called, e.returned) // the parent misses what is not there
}
