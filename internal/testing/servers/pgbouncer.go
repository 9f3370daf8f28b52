package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// StartPgBouncer starts a PgBouncer in that mode, session or transaction, before a PostgreSQL, and returns how to connect to it, by a socket,
// when ready says that it answers.
func StartPgBouncer(tb testing.TB, mode, postgres string, ready func(address string) bool) (address string) {
	tb.Helper()
	dir := directory(tb)
	settings := filepath.Join(dir, "settings")
	err := os.WriteFile(settings, []byte("[databases]\npostgres = "+postgres+"\n[pgbouncer]\npool_mode = "+mode+"\nauth_type = any\n"+
		"listen_addr =\nunix_socket_dir = "+dir+"\n"), 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	address = "host=" + dir + " port=6432 user=test dbname=postgres"
	bouncer := &daemon{
		tb:    tb,
		crash: syscall.SIGKILL,
		ready: func() bool { return ready(address) },
		command: func() *exec.Cmd {
			cmd := exec.Command(find(tb, "pgbouncer", "/usr/sbin", "/usr/local/sbin"), settings)
			cmd.Dir, cmd.SysProcAttr = dir, unprivileged(tb, dir)
			return cmd
		},
	}
	bouncer.Start()
	return address
}
