package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Postgres is a PostgreSQL of the test's own.
type Postgres struct {
	daemon

	// Address is how to connect to it: by a socket, whose path is Socket.
	Address, Socket string

	create func() // its data
	data   string
}

// Lose makes it lose its data, and starts it without any.
func (p *Postgres) Lose() {
	p.tb.Helper()
	p.Kill()
	p.lose(p.data)
	p.create()
	p.Start()
}

// StartPostgres starts a PostgreSQL, and returns when ready says that it answers. It does not wait for its disk, unless settings say so.
func StartPostgres(tb testing.TB, ready func(address string) bool, settings ...string) *Postgres {
	tb.Helper()
	dir := directory(tb)
	as := unprivileged(tb, dir)
	places := []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}
	data := filepath.Join(dir, "data")
	create := func() {
		initdb := exec.Command(find(tb, "initdb", places...), "-D", data, "-U", "test", "-A", "trust", "--no-locale", "--no-sync")
		initdb.Dir, initdb.SysProcAttr = dir, as
		if out, err := initdb.CombinedOutput(); err != nil {
			tb.Fatalf("initdb: %v\n%s", err, out)
		}
	}
	create()
	postgres := find(tb, "postgres", places...)
	p := &Postgres{
		Address: "host=" + dir + " user=test dbname=postgres", Socket: filepath.Join(dir, ".s.PGSQL.5432"), create: create, data: data,
	}
	p.daemon = daemon{
		tb:    tb,
		crash: syscall.SIGQUIT, // at once, without writing anything more. SIGKILL would leave shared memory behind
		ready: func() bool { return ready(p.Address) },
		command: func() *exec.Cmd {
			args := []string{"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"}
			for _, s := range settings { // the last one counts
				args = append(args, "-c", s)
			}
			cmd := exec.Command(postgres, args...)
			cmd.Dir, cmd.SysProcAttr = dir, unprivileged(tb, dir)
			return cmd
		},
	}
	p.Start()
	return p
}

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
