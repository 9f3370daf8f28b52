package main

import (
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/cacheguard/go/examples/internal/table"
)

// How often the progress is shown: on a terminal it is one line that changes, elsewhere each time is a new line.
const (
	everyLive  = 250 * time.Millisecond
	everyPlain = 5 * time.Second
)

// progress shows how a run goes.
type progress struct {
	out  io.Writer
	live bool // out is a terminal
}

func newProgress(out io.Writer) progress {
	file, ok := out.(*os.File)
	if !ok {
		return progress{out: out}
	}
	info, err := file.Stat()
	return progress{out: out, live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// follow shows a line about the run now and then, and a last one when the func that it returns is called, which ends it.
func (p progress) follow(name string, of time.Duration, see func() sight) (over func()) {
	start := time.Now()
	line := func() string {
		now, s := min(time.Since(start), of), see()
		return fmt.Sprintf("  %-12s  %4.1f of %v   expiries %4s   queries %7s", name, now.Seconds(), of,
			table.Count(s.expiries), table.Count(s.queries))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // owner: the run; stop: stop; joined by over
		defer close(stopped)
		p.show(line, stop)
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (p progress) show(line func() string, stop <-chan struct{}) {
	every := everyPlain
	if p.live {
		every = everyLive
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	width := 0
	write := func() {
		text := line()
		if p.live {
			width = max(width, utf8.RuneCountInString(text)) // blanks over what is left of a longer line
			_, _ = fmt.Fprintf(p.out, "\r%-*s", width, text)
			return
		}
		_, _ = fmt.Fprintln(p.out, text)
	}
	for {
		select {
		case <-tick.C:
			write()
		case <-stop:
			write()
			if p.live {
				_, _ = fmt.Fprintln(p.out)
			}
			return
		}
	}
}
