package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// MariaDB is a MariaDB of the test's own.
type MariaDB struct {
	daemon

	// Socket is where it listens. The user root has no password.
	Socket string

	// Next are further arguments of the next start.
	Next []string

	create func() // its data
	data   string
}

// Lose makes it lose its data, and starts it without any.
func (m *MariaDB) Lose() {
	m.tb.Helper()
	m.Kill()
	m.lose(m.data)
	m.create()
	m.Start()
}

// StartMariaDB starts a MariaDB, and returns when ready says that it answers. Settings are further arguments.
func StartMariaDB(tb testing.TB, ready func(socket string) bool, settings ...string) *MariaDB {
	tb.Helper()
	dir := directory(tb)
	data := filepath.Join(dir, "data")
	as := unprivileged(tb, dir)
	create := func() {
		install := exec.Command(find(tb, "mariadb-install-db"), "--no-defaults", "--datadir="+data,
			"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
		install.Dir, install.SysProcAttr, install.Env = dir, as, append(os.Environ(), "TMPDIR="+dir)
		if out, err := install.CombinedOutput(); err != nil {
			tb.Fatalf("mariadb-install-db: %v\n%s", err, out)
		}
	}
	create()
	mariadbd := find(tb, "mariadbd", "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
	m := &MariaDB{Socket: filepath.Join(dir, "s"), create: create, data: data}
	m.daemon = daemon{
		tb:    tb,
		crash: syscall.SIGKILL,
		ready: func() bool { return ready(m.Socket) },
		command: func() *exec.Cmd {
			args := []string{"--no-defaults", "--datadir=" + data, "--socket=" + m.Socket, "--skip-networking",
				"--pid-file=" + filepath.Join(dir, "pid"), "--tmpdir=" + dir, "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
				"--performance-schema=OFF"}
			cmd := exec.Command(mariadbd, slices.Concat(args, settings, m.Next)...)
			cmd.Dir, cmd.SysProcAttr = dir, unprivileged(tb, dir)
			return cmd
		},
	}
	m.Start()
	return m
}
