package cacheguard

import (
	"os"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// pasted is the line of docs/redis.md that makes the user of a Guard.
func pasted(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	expect.ErrorIs(t, err, nil)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "    ACL SETUSER service on") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("docs/redis.md has no line that makes a user")
	return ""
}

func TestTheUserOfTheDocumentationCanBePasted(t *testing.T) {
	t.Parallel()
	line := "ACL SETUSER service on >PASSWORD " + strings.Join(acl.Guard.ACL("shop"), " ")
	expect.Equal(t, "the line of docs/redis.md", pasted(t), line)
	server := redistest.Start(t)
	var args []any
	for _, word := range strings.Fields(pasted(t)) {
		args = append(args, word)
	}
	admin := server.Client(t)
	expect.ErrorIs(t, admin.Do(t.Context(), args...).Err(), nil)
	rdb := server.Client(t, redistest.User("service", "PASSWORD"))
	expect.ErrorIs(t, newGuard(t, rdb, Config{Prefix: "shop"}).SelfCheck(redistest.Patiently(t)), nil)
	for _, command := range []string{"config get maxmemory", "client list", "info", "command", "script flush", "keys *", "acl whoami"} {
		args = nil
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := rdb.Do(t.Context(), args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
