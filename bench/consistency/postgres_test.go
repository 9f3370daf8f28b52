package consistency

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// watchdog runs a command and ends it when its own standard input does, as it does when the test ends, however.
const watchdog = `"$@" & read -r _; kill -INT $!; wait $!`

// startPostgres runs a PostgreSQL of the test's own until it ends, and returns how to connect to it.
func startPostgres(t *testing.T) (url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg-") //nolint:usetesting // its path has to fit into a socket's address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	initdb := exec.Command(findPostgres(t, "initdb"), "-D", data, "-U", "test", "-A", "trust", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}

	var log bytes.Buffer
	server := exec.Command("sh", "-c", watchdog, "sh", findPostgres(t, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	server.Dir, server.SysProcAttr, server.Stdout, server.Stderr = dir, as, &log, &log
	in, err := server.StdinPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the server
		_ = server.Wait()
		if t.Failed() {
			t.Logf("PostgreSQL:\n%s", &log)
		}
	})
	url = "host=" + dir + " user=test dbname=postgres"
	redistest.Await(t, "PostgreSQL to answer", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	})
	return url
}

// unprivileged is whom PostgreSQL runs as, since it refuses to be root; the directory is theirs then.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(nobody.Uid, 10, 32) // numbers, on every Unix
	gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// findPostgres looks where Debian hides the servers, too.
func findPostgres(t *testing.T, command string) string {
	t.Helper()
	if path, err := exec.LookPath(command); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + command) // the pattern is a good one
	if len(paths) == 0 {
		t.Fatalf("there is no %s: apt-get install postgresql, or brew install postgresql", command)
	}
	return slices.Max(paths)
}
