// Cacheguardctl shows the person on call what guards and locks have in Redis, and acts on it.
//
//	go install github.com/cacheguard/go/cmd/cacheguardctl@latest
//
//	export REDIS_URL=redis://localhost:6379
//	cacheguardctl check                               Redis, its settings, the user's rights, the latency, the clock
//	cacheguardctl --prefix shop inspect price:42      its entry, who loads or updates it, who waits, what failed
//	cacheguardctl --prefix shop bypass 10m            every instance loads without the cache; 0 ends it
//	cacheguardctl --prefix shop invalidate price:42   as Guard.Invalidate, on every instance
//	cacheguardctl --prefix shop invalidate --tag category:shoes
//	cacheguardctl --prefix shop invalidate --cache product   as Cache.InvalidateAll
//	cacheguardctl --prefix shop invalidate --all
//	cacheguardctl --lock-prefix jobs locks show import       a mutex, a rwlock or a semaphore: who holds it, who waits
//	cacheguardctl --lock-prefix jobs locks revoke import     with --kind rwlock or --kind semaphore for another kind of lock
//	cacheguardctl --prefix shop watch                 invalidations, as they are published
//	cacheguardctl --prefix shop watch --every 5s      how many there were, by cache
//	export CACHEGUARD_PAGES=http://ops:PASSWORD@10.0.0.7:8080/debug/cacheguard
//	cacheguardctl --prefix shop watch                 and what the caches of an instance do, from its page (package admin)
//	cacheguardctl cdc status                          how far the feeds of package cdc are behind, by the pages of the instances
//	cacheguardctl cdc catchup shop                    returns when the feed shop has invalidated everything that is committed: after a migration
//	cacheguardctl cdc report                          old values after changes, by the pages' reports
//	cacheguardctl cdc triggers --dialect sqlite products id category   the SQL of an outbox and its triggers, for a migration
//	cacheguardctl --prefix shop stats                 memory, evictions, hits, instances that listen
//	cacheguardctl --version
//	cacheguardctl size                                bytes of an entry by payload, tags and version; connections of a fleet
//
// The prefix is Prefix of cacheguard.Config, the lock prefix that of mutex.Config, rwlock.Config or semaphore.Config. The permits of
// a Limiter are a semaphore with its name. It never lists keys: KEYS and SCAN are not used.
//
// # REDIS_URL
//
//	redis://user:password@host:6379/0                 a single Redis; rediss:// for TLS
//	redis://host1:6379,host2:6379                     a cluster: some of its nodes; one is enough
//	redis+sentinel://host1:26379,host2:26379/name/0   by Sentinel, with the name of the primary; rediss+sentinel:// for TLS
//
// The options that go-redis knows may follow after a question mark, such as dial_timeout=1s and sentinel_password. The URL
// comes only from the environment, because other users can see the arguments of a process; it is never printed.
//
// The cdc commands ask no Redis, and no database: the instances do. They need the page of package admin, with its Config.Feeds and Reports.
//
// # Output
//
// Text or, with --json, one object, which has the notes that standard error has, or an error if Redis was asked and there is no result; watch prints one per line. Names of fields stay; new ones may be added. Control characters from
// Redis are escaped.
//
// # Questions
//
// invalidate --all, bypass (but for 0, which ends it) and locks revoke ask before they do anything. They take an answer from a terminal
// only; elsewhere, in a script or a pipe, they do nothing and exit with 2 unless there is --yes.
//
// # Pages
//
// With pages, inspect, invalidate, bypass and stats say what no instance knows, which may be mistyped: the prefix, a Cache, a key or a tag. What comes before the
// colon or the number of a key or tag is compared. The exit code stays 0: it was done. Without pages, standard error says if no process has subscribed to the channels of the prefix.
//
// They also prove whether the instances use the Redis of REDIS_URL, and its database, and no copy of it: a random key, or for locks a lock, is there for a moment, and they are asked
// whether they see it. If none of them does, invalidate, bypass and locks revoke do nothing and exit with 2, as the first two do if no page shows the prefix; check fails, and other
// commands say so. Where that is not known, as no page can be read, the user may not SET or Redis is full, those that write, and check, say so, and do as without pages.
//
// The URLs of --page may have a user and a password, for basic authentication. Give them in CACHEGUARD_PAGES, with commas between them, and not
// as arguments, which other users can see.
//
// # Exit codes
//
//	0   done; of check: all is well
//	1   a check failed, or not all was done; standard error says why
//	2   the command, a flag or REDIS_URL is wrong, or nobody said yes
//	3   Redis cannot be reached; check prints what the pages of instances show all the same
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/cacheguard"
)

// The exit codes.
const (
	done = iota
	failed
	misused
	unreachable
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv("REDIS_URL"), terminal(os.Stdin), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands are what can be asked for.
type commands struct {
	Prefix     string           `default:"cacheguard" help:"Prefix of the cache."`
	LockPrefix string           `default:"lock" help:"Prefix of the locks."`
	Version    kong.VersionFlag `help:"Print the version, and that of Go."`

	Cluster bool `help:"REDIS_URL is a node of a cluster, which need not be said to a server that says so."`
	JSON    bool `help:"Print JSON." name:"json"`

	Check      check      `cmd:"" help:"Check Redis, its settings, the user's rights, the latency and the clock."`
	Inspect    inspect    `cmd:"" help:"Look a key up: its entry, who loads or updates it, who waits, what failed."`
	Invalidate invalidate `cmd:"" help:"Remove keys from the cache, on every instance."`
	Bypass     bypass     `cmd:"" help:"Have every instance load without the cache for a while; invalidations go on."`
	Locks      locks      `cmd:"" help:"Look at locks, or take one away."`
	Watch      watch      `cmd:"" help:"Show invalidations as they are published, or sample what caches do, until interrupted."`
	Size       size       `cmd:"" help:"Measure what entries take in this Redis, under a prefix of its own that it removes, and say what a fleet takes."`
	Stats      stats      `cmd:"" help:"Show memory, evictions, hits, and how many instances listen."`
	CDC        feeds      `cmd:"" help:"Look at feeds of databases' logs, wait for them, or print the triggers of an outbox." name:"cdc"`
}

// env is what a command works with.
type env struct {
	ctx context.Context //nolint:containedctx // of the one command
	rdb redis.UniversalClient
	all *commands
	out *printer

	notes   []string // of strange, for JSON; as text they are on standard error
	looking sync.Once
	looks   []looked // see look

	terminal io.Reader // where somebody may answer; nil: nobody can
	asks     io.Writer
}

// guard opens one with the Prefix; the caller closes it.
func (e *env) guard() (*cacheguard.Guard, error) {
	return cacheguard.New(e.rdb, cacheguard.Config{Prefix: e.all.Prefix, RedisTimeout: answerWithin})
}

func run(ctx context.Context, args []string, url string, terminal io.Reader, stdout, stderr io.Writer) (code int) {
	logging.Disable() // what matters is in the error
	var all commands
	exited := -1
	parser, err := kong.New(&all, kong.Name("cacheguardctl"), kong.Vars{"version": version()}, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.Description("Looks at what guards and locks have in Redis, and acts on it. REDIS_URL says where that is."))
	if err != nil {
		return complain(stderr, err, misused)
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help or --version
	}
	if err != nil {
		return complain(stderr, misplaced(parser, err), misused)
	}
	if strings.HasPrefix(command.Command(), "cdc ") { // which need no Redis
		return finish(command, &env{ctx: ctx, all: &all, out: &printer{to: stdout, json: all.JSON}, asks: stderr}, stderr)
	}
	var rdb redis.UniversalClient
	var reached error
	patiently(stderr, func() string { return "Redis at " + hostsOf(url) }, func() { rdb, reached, err = reachable(ctx, url, all.Cluster) })
	if err != nil {
		return complain(stderr, err, misused)
	}
	defer rdb.Close()
	e := &env{ctx: ctx, rdb: rdb, all: &all, out: &printer{to: stdout, json: all.JSON}, terminal: terminal, asks: stderr}
	if isUnreachable(reached) {
		switch command.Command() {
		case "check":
			reached = errors.Join(reached, all.Check.withoutRedis(e, reached))
		case "stats":
			reached = errors.Join(reached, all.Stats.withoutRedis(e))
		default:
			reached = fmt.Errorf("%w\ncacheguardctl check says more; with CACHEGUARD_PAGES, what each instance finds wrong", reached)
		}
		return e.fail(reached, unreachable, stderr)
	}
	var notes []string
	var refused error
	e.patiently("Redis, to see who uses it", func() { notes, refused = e.strange(command.Command()) })
	if all.JSON {
		e.notes = notes
	}
	if refused != nil {
		return e.fail(refused, misused, stderr)
	}
	for _, note := range notes {
		_ = complain(stderr, errors.New("note: "+note), done) // it is done all the same
	}
	return finish(command, e, stderr)
}

// misplaced says behind which commands a flag goes that stands before them.
func misplaced(parser *kong.Kong, err error) error {
	var of []string
	unknown := regexp.MustCompile(`unknown flag (--[\w-]+)`).FindStringSubmatch(err.Error())
	for _, command := range parser.Model.Leaves(true) {
		for _, flag := range command.Flags {
			if unknown != nil && "--"+flag.Name == unknown[1] {
				of = append(of, "cacheguardctl "+command.Path()+" "+unknown[1])
			}
		}
	}
	if of == nil {
		return err
	}
	return fmt.Errorf("%s goes behind its command: %s", unknown[1], strings.Join(of, ", "))
}

// version names the module's version, as it was installed, and Go's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "cacheguardctl of an unknown version"
	}
	return "cacheguardctl " + info.Main.Version + " " + info.GoVersion
}

// finish runs the command, and returns the code.
func finish(command *kong.Context, e *env, stderr io.Writer) int {
	err := command.Run(e)
	switch {
	case errors.Is(err, errNotConfirmed), errors.Is(err, errNoPage), errors.Is(err, errElsewhere), errors.Is(err, errNoName):
		return e.fail(err, misused, stderr)
	case err != nil:
		return e.fail(err, failed, stderr)
	}
	return done
}

// failure is the object of a command that has no result.
type failure struct {
	Error string   `json:"error"`
	Notes []string `json:"notes,omitempty"`
}

func (r failure) rows() [][]string { return nil } // standard error has it

// fail complains, and returns the code.
func (e *env) fail(err error, code int, stderr io.Writer) int {
	if e.all.JSON && !e.out.printed {
		_ = e.out.print(failure{err.Error(), e.notes}) // standard error has it, too
	}
	return complain(stderr, err, code)
}
