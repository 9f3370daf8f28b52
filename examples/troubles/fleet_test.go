package troubles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

const processes = 3

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	code := leaks.Run(m)
	_ = os.Remove(commandPath) // it may never have been built
	os.Exit(code)
}

// fleet is a service in trouble.
type fleet struct {
	*testing.T

	server    *redistest.Server
	instances [processes]*redistest.Process
	urls      [processes]string
	database  *servers.Postgres // nil: the service has none
	section   string            // of the documentation, about the trouble
	secret    bool              // nothing is logged, as it would give the trouble away
}

// newFleet starts a service, whose trouble has the title in the documentation, which names the test.
func newFleet(t *testing.T, title string) *fleet {
	t.Helper()
	f := startFleet(t, title, strings.Contains(sectionOf(t, title), "feed"))
	if !strings.Contains(f.section, t.Name()) {
		t.Errorf("the section %q does not say that %s tries it", title, t.Name())
	}
	return f
}

// startFleet starts a service, whose trouble has the title in the documentation. It may do what docs/redis.md says, and more. Some have a
// database, and a feed of its log.
func startFleet(t *testing.T, title string, database bool) *fleet {
	t.Helper()
	command(t) // building it may take longer than loads may
	f := &fleet{T: t, server: redistest.Start(t), section: sectionOf(t, title)}
	address := ""
	if database {
		address = f.startDatabase()
	}
	f.redis("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
	for i := range processes {
		f.instances[i] = redistest.Child(t, "TestInstanceOfTheFleet", "ADDR="+f.server.Addr(), "DATABASE="+address, fmt.Sprintf("INSTANCE=shop-%d", i+1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, process := range f.instances {
		url, err := process.ReadLine(ctx)
		if err != nil || !strings.HasPrefix(url, "http://") {
			t.Fatalf("%q, %v", url, err)
		}
		f.urls[i] = url
	}
	return f
}

func sectionOf(t *testing.T, title string) string {
	t.Helper()
	if title == "" { // it is in a table
		return ""
	}
	text, err := os.ReadFile("../../docs/at-3am.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "### "+title+"\n")
	if !found {
		t.Fatalf("docs/at-3am.md has no section %q", title)
	}
	section, _, _ := strings.Cut(rest, "\n##")
	return section
}

// redis sends a command as the administrator.
func (f *fleet) redis(args ...any) {
	f.Helper()
	if err := f.server.Client(f).Do(f.Context(), args...).Err(); err != nil {
		f.Fatal(err)
	}
}

// documented reports a sign that the section does not name.
func (f *fleet) documented(sign string) {
	f.Helper()
	if !strings.Contains(f.section, sign) {
		f.Errorf("docs/at-3am.md does not say %q about this", sign)
	}
}

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

// ask asks an instance; the first is 0. All its answers are text.
func (f *fleet) ask(i int, path string) string {
	f.Helper()
	answer, err := client.Get(f.urls[i] + path)
	if err != nil {
		f.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// logs waits until an instance has logged the line, with all of these.
func (f *fleet) logs(i int, line string, with ...string) {
	f.Helper()
	f.documented("`" + line)
	redistest.Await(f, "the log says "+line, func() bool {
		for logged := range strings.Lines(f.ask(i, "/log")) {
			if (strings.Contains(logged, `msg="cacheguard: `+line) || strings.Contains(logged, `msg="cdc: `+line)) && containsAll(logged, with) {
				return true
			}
		}
		return false
	})
}

// measures waits until a metric of an instance has the value, after act, if there is one.
func (f *fleet) measures(i int, name, labels, value string, act func()) {
	f.Helper()
	f.documented("`" + name)
	line := name + "{" + labels + "} " + value + "\n"
	redistest.Await(f, line, func() bool {
		if act != nil {
			act()
		}
		return strings.Contains("\n"+f.ask(i, "/metrics"), "\n"+line)
	})
}

// counts waits until a metric of an instance is above 0, after act, if there is one.
func (f *fleet) counts(i int, name, labels string, act func()) {
	f.Helper()
	f.documented("`" + name)
	series := name + "{" + labels + "} "
	redistest.Await(f, series+"is above 0", func() bool {
		if act != nil {
			act()
		}
		_, value, found := strings.Cut("\n"+f.ask(i, "/metrics"), "\n"+series)
		return found && !strings.HasPrefix(value, "0\n")
	})
}

// shows waits until the page of an instance shows the fact.
func (f *fleet) shows(i int, what string, is func(*shown) bool) {
	f.Helper()
	f.documented(what)
	redistest.Await(f, "the page shows "+what, func() bool {
		var s shown
		text := f.ask(i, "/admin?view=data")
		if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Guards) != 1 {
			f.Fatalf("%v: %s", err, text)
		}
		return is(&s)
	})
}

// shown is a part of what the page shows.
type shown struct {
	Guards []struct {
		Troubles map[string]float64
		Queued   int
		Intents  int
		Running  []struct {
			Key  string
			Took float64
		}
		Hot    []struct{ Key string }
		Caches []struct {
			Damaged, Unstorable, Takeovers int
			Failing                        struct{ Failed int }
		}
	}
	Lockers []struct {
		Locks []struct{ Name string }
	}
	Feeds []struct {
		Problem  string
		Reading  bool
		Retained int64 `json:"retained_bytes"`
	}
}

// ctl waits until cacheguardctl ends with the code, and says all of these.
func (f *fleet) ctl(code int, args string, with ...string) {
	f.Helper()
	f.documented("`cacheguardctl " + strings.TrimSuffix(args, " --json"))
	var said string
	redistest.Await(f, fmt.Sprintf("cacheguardctl %s ends with %d and says %q", args, code, with), func() bool {
		exit, out := f.run(strings.Fields(args)...)
		if now := fmt.Sprintf("%d: %s", exit, out); now != said {
			said = now
			if !f.secret {
				f.Logf("cacheguardctl %s: %s", args, said)
			}
		}
		return exit == code && containsAll(out, with)
	})
}

// run runs cacheguardctl with the rights of the service.
func (f *fleet) run(args ...string) (code int, out string) {
	f.Helper()
	if slices.Contains(args, "cdc") {
		return f.runAt(f.pages(), args...)
	}
	return f.runAt("", args...) // check alone is about Redis
}

// runAt is run with pages in its environment.
func (f *fleet) runAt(pages string, args ...string) (code int, out string) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), command(f.T), args...)
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://app:secret@"+f.server.Addr(), "CACHEGUARD_PAGES="+pages)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// pages are the URLs of the page on all instances.
func (f *fleet) pages() string {
	urls := make([]string, processes)
	for i, url := range f.urls {
		urls[i] = url + "/admin"
	}
	return strings.Join(urls, ",")
}

// checks waits until the check of all instances, the first step of the documentation, says all of these. It runs act before each.
func (f *fleet) checks(act func(), with ...string) {
	f.Helper()
	var said string
	redistest.Await(f, fmt.Sprintf("cacheguardctl check --page says %q", with), func() bool {
		if act != nil {
			act()
		}
		_, said = f.run("--prefix", "shop", "--lock-prefix", "jobs", "check", "--page", f.pages())
		return containsAll(said, with)
	})
	f.Log(said)
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

var (
	commandPath  = filepath.Join(os.TempDir(), fmt.Sprintf("cacheguardctl-of-a-test-%d", os.Getpid()))
	buildCommand = sync.OnceValue(func() error {
		out, err := exec.Command("go", "build", "-o", commandPath, "github.com/cacheguard/go/cmd/cacheguardctl").CombinedOutput()
		if err != nil {
			return fmt.Errorf("build cacheguardctl: %w\n%s", err, out)
		}
		return nil
	})
)

// command is cacheguardctl, which is built once.
func command(t *testing.T) string {
	t.Helper()
	if err := buildCommand(); err != nil {
		t.Fatal(err)
	}
	return commandPath
}
