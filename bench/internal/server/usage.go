package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Usage is what a server has done since it started.
type Usage struct {
	Requests int64            // reads from clients: a pipeline is one, so these are round trips as the server sees them
	Commands map[string]int64 // by lower-case name, those inside scripts included
	Hits     int64            // keys that were read and there
	Wire     int64            // bytes of requests and replies, but for INFO's replies
	CPU      time.Duration    // that it computed, reading and writing included, but for INFO
	Scripts  time.Duration    // of that, inside EVALSHA
}

// Usage asks the server.
func (s *Server) Usage(ctx context.Context) (Usage, error) {
	looked := s.looked.Load() // a reply does not count itself
	info, err := s.info(ctx)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Commands: make(map[string]int64)}
	for name, text := range info {
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok && name != "info" {
			calls, _, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
			u.Commands[name], err = strconv.ParseInt(calls, 10, 64)
			if err != nil {
				return Usage{}, fmt.Errorf("INFO commandstats: %s: %w", name, err)
			}
		}
	}
	var out int64
	for _, field := range []struct {
		name string
		to   *int64
	}{{"total_reads_processed", &u.Requests}, {"keyspace_hits", &u.Hits}, {"total_net_input_bytes", &u.Wire}, {"total_net_output_bytes", &out}} {
		if *field.to, err = strconv.ParseInt(info[field.name], 10, 64); err != nil {
			return Usage{}, fmt.Errorf("INFO stats: %s: %w (Redis 7.0 is the least)", field.name, err)
		}
	}
	u.Requests -= s.looks.Load()
	u.Wire += out - looked
	for _, name := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return Usage{}, fmt.Errorf("INFO cpu: %s: %w (Redis 7.0 is the least)", name, err)
		}
		u.CPU += time.Duration(seconds * float64(time.Second))
	}
	looking, err := microsOf(info["cmdstat_info"])
	if err != nil {
		return Usage{}, err
	}
	u.CPU -= looking
	u.Scripts, err = microsOf(info["cmdstat_evalsha"])
	return u, err
}

// microsOf is how long a command has run, according to its INFO commandstats, which has nothing about one that never ran.
func microsOf(stat string) (time.Duration, error) {
	if stat == "" {
		return 0, nil
	}
	_, rest, _ := strings.Cut(stat, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("INFO commandstats: %q: %w", stat, err)
	}
	return time.Duration(n) * time.Microsecond, nil
}

// Since is what was done after before.
func (u Usage) Since(before Usage) Usage {
	did := Usage{
		Requests: u.Requests - before.Requests, Hits: u.Hits - before.Hits, Wire: u.Wire - before.Wire,
		CPU:     max(u.CPU-before.CPU, 0), // the time of INFO, which is left out, is measured by another clock
		Scripts: u.Scripts - before.Scripts, Commands: make(map[string]int64),
	}
	for name, calls := range u.Commands {
		if n := calls - before.Commands[name]; n > 0 {
			did.Commands[name] = n
		}
	}
	return did
}

// Total is the number of commands.
func (u Usage) Total() (commands int64) {
	for _, calls := range u.Commands {
		commands += calls
	}
	return commands
}

func (s *Server) info(ctx context.Context) (map[string]string, error) {
	text, err := s.control.Info(ctx, "server", "stats", "commandstats", "cpu").Result()
	if err != nil {
		return nil, fmt.Errorf("INFO: %w", err)
	}
	s.looks.Add(1)
	s.looked.Add(int64(len(text)))
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// Plus is what was done in both.
func (u Usage) Plus(more Usage) Usage {
	sum := Usage{
		Requests: u.Requests + more.Requests, Hits: u.Hits + more.Hits, Wire: u.Wire + more.Wire, CPU: u.CPU + more.CPU,
		Scripts: u.Scripts + more.Scripts, Commands: make(map[string]int64),
	}
	for _, part := range []Usage{u, more} {
		for name, calls := range part.Commands {
			sum.Commands[name] += calls
		}
	}
	return sum
}
