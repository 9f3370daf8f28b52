package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

// demo plays what the page lets you do, by itself: two processes of this program, a Redis that it kills, and a database.
type demo struct {
	ctx   context.Context //nolint:containedctx // of the whole run
	out   io.Writer
	pause time.Duration // between the scenes, for a reader
	a, b  *process
	wires [2]*wire
	table *table
	said  []string // all lines, for the picture
	wrong []error
}

const (
	callers = 100 // in each process
	price   = "price:42"
	right   = "right:7"
)

// playDemo plays the demo, and draws what it said into the file, if there is one.
func playDemo(ctx context.Context, out io.Writer, pause time.Duration, picture string) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	d := &demo{ctx: ctx, out: out, pause: pause, table: newTable()}
	address, closeTable, err := d.table.serve()
	if err != nil {
		return err
	}
	defer closeTable()
	prefix := fmt.Sprintf("cacheguard-demo-%d", time.Now().UnixNano())
	defer func() { err = errors.Join(err, server.Delete(context.WithoutCancel(ctx), prefix)) }()
	network, redis := server.Endpoint()
	for i, p := range []**process{&d.a, &d.b} {
		if d.wires[i], err = openWire(network, redis, up); err != nil {
			return err
		}
		defer func(w *wire) { _ = w.close() }(d.wires[i]) // nothing is lost with it
		if *p, err = startProcess(ctx, "AB"[i:i+1], redis, d.wires[i].listener.Addr().String(), address, prefix); err != nil {
			return err
		}
		defer (*p).stop()
	}
	d.line("Two processes with %d callers each, %s, and a database whose queries take %v.", callers, server, d.table.takes)
	if err := d.play(); err != nil {
		return err
	}
	if err := errors.Join(d.wrong...); err != nil {
		return err
	}
	d.line("")
	d.line("All as promised. Do it yourself, with buttons and charts: go run ./examples/lab")
	if picture == "" {
		return nil
	}
	return os.WriteFile(picture, drawn(d.said), 0o644)
}

func (d *demo) play() error {
	scenes := []func() error{d.expire, d.again, d.commitLate, d.commitUnderIntent, d.revoke, d.killRedis, d.revokeWithoutRedis, d.redisIsBack, d.killProcess}
	for _, scene := range scenes {
		d.line("")
		if err := scene(); err != nil {
			return err
		}
		program.Pause(d.ctx, d.pause)
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.said = append(d.said, text)
	_, _ = fmt.Fprintln(d.out, text) // a lost line loses nothing: there is an exit code
}

// see says what is seen. What is not as promised fails the demo at its end.
func (d *demo) see(promised bool, format string, args ...any) {
	d.line("   → "+format, args...)
	if !promised {
		d.wrong = append(d.wrong, fmt.Errorf("NOT AS PROMISED: "+format, args...))
	}
}

// ask has callers of the processes ask for a key, all at once.
func (d *demo) ask(key string, of ...*process) (seen, error) {
	answers := make(chan seen, len(of))
	for _, p := range of {
		go func() { answers <- p.do(order{Do: "get", Key: key, Callers: callers}) }() // joined below; ends with the process
	}
	all := seen{Values: make(map[string]int)}
	for range of {
		s := <-answers
		for value, n := range s.Values {
			all.Values[value] += n
		}
		all.Failed += s.Failed
		all.Slowest = max(all.Slowest, s.Slowest)
		if all.Err == "" {
			all.Err = s.Err
		}
	}
	return all, all.error()
}

// tell has a process do something that must succeed.
func (d *demo) tell(p *process, orders ...order) error {
	for _, o := range orders {
		if err := p.do(o).error(); err != nil {
			return fmt.Errorf("%s, %s: %w", p.name, o.Do, err)
		}
	}
	return nil
}
