package servers

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// Etcd is a member of an etcd cluster of the test's own.
type Etcd struct {
	daemon

	Endpoint string
}

// StartEtcd starts a cluster of n members, and returns when ready says that each of them answers.
func StartEtcd(tb testing.TB, n int, ready func(endpoint string) bool) []*Etcd {
	tb.Helper()
	binary := find(tb, "etcd")
	members := make([]*Etcd, n)
	peers := make([]string, n)
	names := make([]string, n)
	for i := range members {
		members[i] = &Etcd{Endpoint: fmt.Sprintf("http://127.0.0.1:%d", redistest.FreePort(tb))}
		peers[i] = fmt.Sprintf("http://127.0.0.1:%d", redistest.FreePort(tb))
		names[i] = fmt.Sprintf("m%d=%s", i, peers[i])
	}
	for i, m := range members {
		dir := directory(tb)
		m.daemon = daemon{
			tb:    tb,
			crash: syscall.SIGKILL,
			ready: func() bool { return ready(m.Endpoint) },
			command: func() *exec.Cmd {
				return exec.Command(binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", dir,
					"--listen-client-urls", m.Endpoint, "--advertise-client-urls", m.Endpoint,
					"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
					"--initial-cluster", strings.Join(names, ","), "--initial-cluster-state", "new")
			},
		}
		m.begin()
	}
	for _, m := range members {
		m.await()
	}
	return members
}
