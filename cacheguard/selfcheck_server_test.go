package cacheguard

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Also for a user who may not ask: a server says its version when a connection begins.
func TestSelfCheckNamesTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	version := server.Info("server")["redis_version"]
	if v := server.Info("server")["valkey_version"]; v != "" {
		version = v
	} else if v := server.Info("server")["redict_version"]; v != "" {
		version = v
	}
	var log bytes.Buffer
	few := server.As(t, acl.Guard.ACL("shop")...)
	g := newGuard(t, server.Client(t, few), Config{Prefix: "shop", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), nil)
	expect.ErrorIs(t, g.Close(), nil) // nobody writes to the log after it
	if !strings.Contains(log.String(), "self-check passed") || !strings.Contains(log.String(), version+", standalone") {
		t.Errorf("the log does not name the server %s:\n%s", version, &log)
	}
	poorer := server.As(t, append(acl.Guard.ACL("shop"), "-mget")...)
	if err := newGuard(t, server.Client(t, poorer), Config{Prefix: "shop"}).SelfCheck(redistest.Patiently(t)); err == nil ||
		!strings.Contains(err.Error(), "self-check of ") || !strings.Contains(err.Error(), version+", standalone: ") {
		t.Errorf("the error does not name the server %s: %v", version, err)
	}
}
