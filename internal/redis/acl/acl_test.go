package acl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/serverinfo"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestACheckIsAsPatientAsItsContext(t *testing.T) {
	t.Parallel()
	far, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		least, most time.Duration
	}{"no deadline": {t.Context(), 0, Patience}, "a deadline": {far, time.Hour / 2, time.Hour}} {
		ctx, cancel := Patiently(c.ctx)
		defer cancel()
		if left := left(ctx); left <= c.least || left > c.most {
			t.Errorf("%s: %v", name, left)
		}
	}
}

func TestTheCommandsOfAllScriptsAreListed(t *testing.T) {
	t.Parallel()
	calls := regexp.MustCompile(`redis\.p?call\(([^,)]*)`)
	for _, s := range All() {
		folder := s.Package
		if folder == "cacheguard" {
			folder = "internal/cache/protocol"
		} else if folder == "rwlock" {
			folder = "internal/lock/rw"
		}
		files, err := filepath.Glob("../../../" + folder + "/lua/*.lua")
		if err != nil || len(files) == 0 {
			t.Fatalf("scripts of %s: %v, %v", s.Package, files, err)
		}
		if s.Package == "rwlock" || s.Package == "semaphore" {
			files = append(files, "../../../internal/lock/queue/lua/prelude.lua")
		}
		if s.Package == "cacheguard" {
			for _, more := range []string{"cache/epoch", "redis/send"} {
				others, err := filepath.Glob("../../../internal/" + more + "/lua/*.lua")
				if err != nil || len(others) == 0 {
					t.Fatalf("scripts of %s: %v, %v", more, others, err)
				}
				files = append(files, others...)
			}
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			expect.Must(t, err)
			for _, call := range calls.FindAllStringSubmatch(string(source), -1) {
				if command := strings.Trim(call[1], `'"`); !slices.Contains(slices.Concat(s.Commands, s.Optional), command) {
					t.Errorf("%s runs %s, which is not in the set of %s", file, command, s.Package)
				}
			}
		}
	}
}

func TestWhoMayUpdateMayUseItsLocks(t *testing.T) {
	t.Parallel()
	for _, command := range RWLock.Commands {
		expect.Equal(t, command, slices.Contains(Guard.Commands, command), true)
	}
}

func TestTheDocumentationHasTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/redis.md")
	expect.Must(t, err)
	if !strings.Contains(string(page), table()) {
		t.Errorf("docs/redis.md should have this table:\n%s", table())
	}
}

// The keys of cdc/mysql have a prefix of their own, whatever the Guard's is.
func TestOneLineOfTheDocumentationAddsTheFeedOfMariaDB(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/redis.md")
	_, line, found := strings.Cut(string(page), "\n    ACL SETUSER service ~cacheguard:cdc:* ")
	if err != nil || !found {
		t.Fatal("docs/redis.md has no line for the feed of MariaDB:", err)
	}
	line, _, _ = strings.Cut(line, "\n")
	rdb := shared.Client(t, shared.As(t, append(Guard.ACL("shop"), append(strings.Fields(line), "~cacheguard:cdc:*")...)...))
	var tasks sync.WaitGroup
	expect.ErrorIs(t, Mutex.SelfCheck(redistest.Patiently(t), &tasks, rdb, "cacheguard:cdc:lock"))
	tasks.Wait()
	expect.ErrorIs(t, rdb.HSet(t.Context(), "cacheguard:cdc:{acl}", "fence", 1).Err())
}

func TestOneLineOfTheDocumentationAddsTheOtherPackages(t *testing.T) {
	t.Parallel()
	var more []string
	for _, s := range All() {
		for _, command := range slices.Concat(s.Commands, s.Optional) {
			if word := "+" + strings.ToLower(command); s.Package != Guard.Package && !slices.Contains(Guard.ACL("shop"), word) {
				more = append(more, word)
			}
		}
	}
	more = slices.Compact(slices.Sorted(slices.Values(more)))
	page, err := os.ReadFile("../../../docs/redis.md")
	if line := "\n    ACL SETUSER service " + strings.Join(more, " ") + "\n"; err != nil || !strings.Contains(string(page), line) {
		t.Errorf("docs/redis.md should have this line: %s, %v", line, err)
	}
	user := shared.As(t, append(Guard.ACL("shop"), more...)...)
	for _, s := range All() {
		var tasks sync.WaitGroup
		expect.ErrorIs(t, s.SelfCheck(redistest.Patiently(t), &tasks, shared.Client(t, user), "shop"))
		tasks.Wait()
	}
}

// checkAs checks the set as a user with its rights under the prefix shop, and the changes.
func checkAs(t *testing.T, s Set, prefix string, changes ...string) error {
	t.Helper()
	rdb := shared.Client(t, shared.As(t, append(s.ACL("shop"), changes...)...))
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if err := s.Check(redistest.Patiently(t), &tasks, rdb, prefix); err != nil {
		return err
	}
	for _, channel := range s.Channels {
		if err := CheckChannel(redistest.Patiently(t), &tasks, rdb, prefix+strings.ReplaceAll(channel, "*", "1")); err != nil {
			return err
		}
	}
	return nil
}

func TestCheckPassesWithTheRightsOfTheSet(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		expect.Equal(t, s.Package, checkAs(t, s, "shop"), nil)
	}
	if left := shared.Client(t).Keys(t.Context(), "shop:{self-check:*").Val(); len(left) > 0 {
		t.Errorf("keys were left: %q", left)
	}
}

func TestCheckNamesTheCommandThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		for _, command := range s.Commands {
			expect.Says(t, checkAs(t, s, "shop", "-"+command), command, "NOPERM")
		}
	}
}

func TestCheckNamesAllCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	expect.Says(t, checkAs(t, CAS, "shop", "-del", "-lpush", "-lpos"), "DEL, LPOS")
}

func TestCheckSaysThatTheKeysAreRefused(t *testing.T) {
	t.Parallel()
	expect.Says(t, checkAs(t, CAS, "other"), `keys such as "other:{`)
}

func TestCheckDoesNotNameCommandsThatTheUserHasWhenItsKeysAreRefusedToo(t *testing.T) {
	t.Parallel()
	expect.Says(t, checkAs(t, Mutex, "other", "-zscore"), `keys such as "other:{`, "the user ZSCORE:")
}

func TestCheckNamesTheChannelThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, channel := range Guard.Channels {
		others := []string{"resetchannels"}
		for _, other := range Guard.Channels {
			if other != channel {
				others = append(others, "&shop"+other)
			}
		}
		name := "shop" + strings.TrimSuffix(channel, "*")
		expect.Says(t, checkAs(t, Guard, "shop", others...), name)
	}
}

func TestARedisThatDoesNotSayWhetherItEvictsPasses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	expect.Says(t, serverinfo.Evicts(t.Context(), server.Client(t)), "allkeys-lru")
	silent := server.Client(t, server.As(t, CAS.ACL("shop")...))
	expect.ErrorIs(t, serverinfo.Evicts(t.Context(), silent))
}

// table returns the table of rights in the documentation, in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| package | commands | channels | optional |\n|---|---|---|---|\n")
	for _, s := range All() {
		channels := make([]string, len(s.Channels))
		for i, channel := range s.Channels {
			channels[i] = "PREFIX" + channel
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Package, coded(s.Commands), coded(channels), coded(s.Optional))
	}
	fmt.Fprintf(&b, "| any, on a cluster | %s | | |\n", coded(Cluster()))
	return b.String()
}

func coded(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.ReplaceAll(strings.Join(words, "` `"), "|", `\|`) + "`"
}
