package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// settings are what the flags say.
type settings struct {
	instances int
	callers   int // of each instance
	duration  time.Duration
	ttl       time.Duration
	query     time.Duration
}

// parseFlags reads the command line. Its error names the flag that is wrong; it is flag.ErrHelp after -h, when the help
// has been written.
func parseFlags(args []string, help io.Writer) (settings, error) {
	var s settings
	var short bool
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned, and printed once
	flags.IntVar(&s.instances, "instances", 8, "`number` of instances of the service")
	flags.IntVar(&s.callers, "callers", 100, "`number` of concurrent callers of each instance")
	flags.DurationVar(&s.duration, "duration", 8*time.Second, "how long each of the two runs takes")
	flags.DurationVar(&s.ttl, "ttl", time.Second, "how long an entry lives in the cache")
	flags.DurationVar(&s.query, "query", 80*time.Millisecond, "how long a database query takes")
	flags.BoolVar(&short, "short", false, "a few seconds in all: -callers 25 -duration 2s -ttl 400ms, where not given")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printHelp(flags, help)
		}
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if short {
		s.shorten(flags)
	}
	return s, s.check()
}

func printHelp(flags *flag.FlagSet, w io.Writer) {
	_, _ = fmt.Fprint(w, "Quickstart compares a cache written by hand with cacheguard while a hot entry keeps expiring.\n",
		"REDIS_URL and DATABASE_URL (PostgreSQL) replace the embedded Redis and SQLite.\n\n")
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// shorten changes the defaults, and nothing that was given on the command line.
func (s *settings) shorten(flags *flag.FlagSet) {
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["callers"] {
		s.callers = 25
	}
	if !given["duration"] {
		s.duration = 2 * time.Second
	}
	if !given["ttl"] {
		s.ttl = 400 * time.Millisecond
	}
}

// check refuses what would run into the limits of a laptop, or be over before the watcher could count anything.
func (s settings) check() error {
	switch {
	case s.instances < 1 || s.instances > 64:
		return fmt.Errorf("-instances: %d is not between 1 and 64", s.instances)
	case s.callers < 1 || s.callers > 1000:
		return fmt.Errorf("-callers: %d is not between 1 and 1000", s.callers)
	case s.ttl < 100*time.Millisecond:
		return fmt.Errorf("-ttl: %v is shorter than 100ms", s.ttl)
	case s.query < 20*time.Millisecond || s.query > 10*time.Second:
		return fmt.Errorf("-query: %v is not between 20ms and 10s", s.query)
	case s.duration <= s.ttl+s.query:
		return fmt.Errorf("-duration: %v is too short to see an entry expire: it takes more than -ttl and -query together (%v)",
			s.duration, s.ttl+s.query)
	}
	return nil
}
