// Package program is what the examples share as commands: flags, -short, exit codes, and an end at Ctrl-C.
package program

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	Interrupted = 130
)

// Busy begins what a program says, without failing, when it was held up itself.
const Busy = "THE MACHINE IS TOO BUSY TO TELL, run it again"

// A Program is an example.
type Program struct {
	Name  string
	About string // one sentence for -h
	// Backends says which variables replace what is embedded; by default, both.
	Backends string
	Flags    func(*flag.FlagSet)
	Short    map[string]string // the flags as -short sets them, where they are not given
	Check    func() error      // of the flags; its error names the flag that is wrong
	Run      func(ctx context.Context, out io.Writer) error
}

// Main runs the program and exits.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	os.Exit(p.Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Execute runs the program, and returns its exit code.
func (p Program) Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	switch err := p.parse(args, stdout); {
	case errors.Is(err, flag.ErrHelp):
		return OK
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return Usage
	}
	switch err := p.Run(ctx, stdout); {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintf(stderr, "\n%s: interrupted\n", p.Name)
		return Interrupted
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return Failed
	}
	return OK
}

// parse reads the command line. Its error names the flag that is wrong; it is flag.ErrHelp after -h, when the help has
// been written.
func (p Program) parse(args []string, help io.Writer) error {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned, and printed once
	p.Flags(flags)
	short := flags.Bool("short", false, "as briefly as makes sense")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			backends := cmp.Or(p.Backends, "REDIS_URL and DATABASE_URL (PostgreSQL) replace the embedded Redis and SQLite.")
			_, _ = fmt.Fprintf(help, "%s\n%s\n\n", p.About, backends)
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *short {
		if err := p.shorten(flags); err != nil {
			return err
		}
	}
	return p.Check()
}

// shorten changes the defaults, and nothing that was given on the command line.
func (p Program) shorten(flags *flag.FlagSet) error {
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range p.Short {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("-short: -%s: %w", name, err)
		}
	}
	return nil
}

// Pause waits, and reports whether ctx lasted that long.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
