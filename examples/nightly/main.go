// Nightly has three instances of a service whose schedulers all start the same job at night. Their clocks differ, so they start it one after
// another, and one of them runs it. In the second night the first one fails, and the next one makes up for it.
//
// It needs nothing but Go. REDIS_URL names a real Redis to use instead of the embedded one.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/mutex"
)

const (
	skew     = 200 * time.Millisecond // by how much the clock of an instance is behind that of the one before
	interval = 2 * time.Second        // longer than the clocks differ, shorter than from night to night: an hour in real life
)

// settings are what the flags say.
type settings struct{ nights int }

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "nightly", About: "Nightly has three instances start a job at night. One of them runs it.",
		Flags: func(f *flag.FlagSet) { f.IntVar(&s.nights, "nights", 3, "`number` of nights") },
		Short: map[string]string{"nights": "2"},
		Check: func() error {
			if s.nights < 1 || s.nights > 365 {
				return fmt.Errorf("-nights: %d is not between 1 and 365", s.nights)
			}
			return nil
		},
		Run: func(ctx context.Context, out io.Writer) (err error) {
			server, err := backends.Redis(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.Close()) }()
			return s.run(ctx, out, server)
		},
	}
}

// instance is one of the service.
type instance struct {
	name  string
	redis *redis.Client
	jobs  *mutex.Locker
}

func open(server *backends.RedisServer, name, prefix string) (*instance, error) {
	i := &instance{name: name, redis: server.NewClient()}
	var err error
	i.jobs, err = mutex.New(i.redis, mutex.Config{Prefix: prefix, RedisTimeout: backends.Patience})
	return i, err
}

func (i *instance) close() {
	_ = i.jobs.Close() // always nil
	_ = i.redis.Close()
}

// atNight is what the instance's scheduler calls. The first instance writes the report, and no other does.
func (i *instance) atNight(ctx context.Context, report func() error) (ran bool, err error) {
	return i.jobs.Once(ctx, "report", interval, func(context.Context, *mutex.Lease) error {
		return report()
	})
}

func (s *settings) run(ctx context.Context, out io.Writer, server *backends.RedisServer) error {
	prefix := "nightly-" + rand.Text()
	var fleet []*instance
	for _, name := range []string{"a", "b", "c"} {
		i, err := open(server, name, prefix)
		if err != nil {
			return err
		}
		defer i.close()
		fleet = append(fleet, i)
	}
	_, _ = fmt.Fprintf(out, "3 instances start a report every night, %v apart as their clocks differ. It is to be written once in %v.\n"+
		"The lock is in %s.\n\n", skew, interval, server)
	for night := 1; night <= s.nights; night++ {
		reports, err := s.night(ctx, out, fleet, night)
		if err != nil {
			return err
		}
		if reports != 1 {
			return fmt.Errorf("NOT AS PROMISED: %d reports in night %d", reports, night)
		}
	}
	_, _ = fmt.Fprintf(out, "\n%d nights, one report in each.\n", s.nights)
	return nil
}

// night has the schedulers of all instances fire, another one first each night, and returns how many reports were written.
func (s *settings) night(ctx context.Context, out io.Writer, fleet []*instance, night int) (reports int, err error) {
	_, _ = fmt.Fprintf(out, "night %d\n", night)
	for n := range fleet {
		i := fleet[(night+n)%len(fleet)]
		diskFull := night == 2 && n == 0
		ran, err := i.atNight(ctx, func() error {
			if diskFull {
				return errors.New("the disk is full")
			}
			reports++
			return nil
		})
		switch {
		case err != nil && !diskFull:
			return reports, err
		case err != nil:
			_, _ = fmt.Fprintf(out, "  instance %s fails: %v. The run does not count\n", i.name, err)
		case ran:
			_, _ = fmt.Fprintf(out, "  instance %s writes the report\n", i.name)
		default:
			_, _ = fmt.Fprintf(out, "  instance %s finds it written\n", i.name)
		}
		if !program.Pause(ctx, skew) {
			return reports, context.Cause(ctx)
		}
	}
	return reports, s.day(ctx, fleet[0])
}

// day lasts until the interval is over, by the server's clock.
func (s *settings) day(ctx context.Context, i *instance) error {
	for {
		info, err := i.jobs.Inspect(ctx, "report")
		if err != nil || info.Token == "" {
			return err
		}
		if !program.Pause(ctx, info.Left) {
			return context.Cause(ctx)
		}
	}
}
