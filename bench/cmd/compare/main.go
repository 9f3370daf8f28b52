// Command compare measures cacheguard beside other libraries on a real redis-server, and writes down what it finds:
//
//	go run ./bench/cmd/compare -out bench/results/run
//
// It starts a redis-server of its own, or uses the one at REDIS_URL, on which nobody else should work during the run.
// There it removes its own keys at the end, and touches no others. It ends by itself; Ctrl-C ends it with what it has
// so far.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/bench/internal/report"
	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scale"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/distance"
)

func main() {
	distance.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	logging.Disable()            // of go-redis, which reports every connection that an outage costs
	code := 0
	if err := compare(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compare:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	scenarios, rivals *regexp.Regexp
	rounds            int
	each              time.Duration
	smoke, list       bool
	scale             bool
	out, from         string
	trips             []time.Duration // round trips to Redis; none: each case has its own
}

// longest is what the scenarios that need a multiple of it can do before their calls count as hanging; more rounds say
// more.
const longest = 3 * time.Second

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	scenarios := f.String("scenarios", "", "only scenarios, or cases as scenario: case, that match this regular `expression`")
	who := f.String("rivals", "", "beside our own, only rivals that match this regular `expression`")
	f.IntVar(&o.rounds, "rounds", 5, "how often the rivals take turns")
	f.DurationVar(&o.each, "duration", 300*time.Millisecond, "what is timed of each rival in each round of a case, at most 3s; some need a multiple")
	f.BoolVar(&o.smoke, "smoke", false, "only see whether everything works: one short round of one or two cases each")
	f.BoolVar(&o.scale, "scale", false, "compare us with the model of bench/SCALE.md instead of with rivals")
	f.BoolVar(&o.list, "list", false, "list the scenarios, their cases and who takes part")
	trips := f.String("rtt", "", "put Redis a `round trip` away, or several: 0,1ms; without this flag each scenario at 0, 0.3 and 1 ms, and some further away")
	f.StringVar(&o.out, "out", "", "write compare.json, compare.md and the plots to this `directory`")
	f.StringVar(&o.from, "from", "", "measure nothing, and write what this compare.json `file` has")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q?", f.Arg(0))
	}
	if o.rounds < 1 || o.each <= 0 || o.each > longest {
		return o, fmt.Errorf("-rounds must be positive, and -duration as well and at most %v", longest)
	}
	if o.scale && *trips != "" {
		return o, errors.New("-scale measures on the loopback interface, without -rtt")
	}
	if o.smoke {
		o.rounds, o.each = 1, 20*time.Millisecond
	}
	var serr, rerr, terr error
	o.scenarios, serr = regexp.Compile(*scenarios)
	o.rivals, rerr = regexp.Compile(*who)
	o.trips, terr = roundTrips(*trips)
	return o, errors.Join(serr, rerr, terr)
}

// roundTrips are separated by commas.
func roundTrips(text string) (all []time.Duration, err error) {
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		trip, err := time.ParseDuration(word)
		if err != nil || trip < 0 || trip > farthest {
			return nil, fmt.Errorf("-rtt: %q is no round trip of 0 to %v", word, farthest)
		}
		all = append(all, trip)
	}
	return all, nil
}

// farthest is how far away Redis can be before a stampede's calls count as hanging.
const farthest = 200 * time.Millisecond

func compare(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	all := scenario.All()
	if o.scale {
		all = scale.All()
	}
	chosen := o.choose(all)
	if len(chosen) == 0 {
		return errors.New("no scenario matches; -list has them all")
	}
	if o.list {
		return list(stdout, chosen)
	}
	if o.from != "" {
		r, err := report.Read(o.from)
		if err != nil {
			return err
		}
		return o.write(r, stdout)
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil { // an hour later it would be too late to say so
			return err
		}
	}
	redis, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	r := report.Report{About: about(ctx, redis, o, args)}
	run := runner{options: o, redis: redis, progress: stderr, proxies: make(map[time.Duration]*distance.Remote)}
	failed := run.run(ctx, chosen, &r)
	failed = errors.Join(failed, run.close())
	r.About.Took, r.About.Partial = time.Since(r.About.Began), failed != nil
	if err := redis.Remove(context.WithoutCancel(ctx), rivals.Prefix); err != nil && ctx.Err() == nil {
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, o.write(&r, stdout))
}

func open(ctx context.Context) (*server.Server, error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		return server.Connect(ctx, url)
	}
	return server.Start()
}

// write writes the report to its directory, or as Markdown to stdout.
func (o options) write(r *report.Report, stdout io.Writer) error {
	if o.out == "" {
		return r.Markdown(stdout)
	}
	return r.WriteTo(o.out)
}

func list(w io.Writer, all []scenario.Scenario) error {
	var text strings.Builder
	for _, s := range all {
		var names []string
		for _, c := range s.Cases {
			fmt.Fprintf(&text, "%s: %s\n", s.Name, c.Name)
			for _, e := range c.Entries {
				if !slices.Contains(names, e.Name) {
					names = append(names, e.Name)
				}
			}
		}
		fmt.Fprintf(&text, "\tbetween %s\n", strings.Join(names, "; "))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// about says where and how the report is made. It leaves out what it cannot find out.
func about(ctx context.Context, redis *server.Server, o options, args []string) report.About {
	version, _ := redis.Version(ctx)
	return report.About{
		Began:   time.Now(),
		Command: strings.TrimSpace("go run ./bench/cmd/compare " + strings.Join(args, " ")),
		Commit:  commit(ctx),
		Machine: machine(),
		Go:      runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis:   version,
		Rounds:  o.rounds,
		Each:    o.each,
	}
}

func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(changes) > 0 {
		name += " with changes"
	}
	return name
}

func machine() string {
	name := runtime.GOARCH
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range bytes.Lines(text) {
			if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%d processors (%s)", runtime.GOMAXPROCS(0), name)
}
