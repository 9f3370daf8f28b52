package servers

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// Etcd is a member of an etcd cluster of the test's own.
type Etcd struct {
	daemon

	Endpoint string

	peer   string
	data   string
	state  string // of the cluster when it starts
	others func() []*Etcd
}

// StartEtcd starts a cluster of n members, and returns when ready says that each of them answers.
func StartEtcd(tb testing.TB, n int, ready func(endpoint string) bool) []*Etcd {
	tb.Helper()
	binary := find(tb, "etcd")
	members := make([]*Etcd, n)
	names := make([]string, n)
	for i := range members {
		members[i] = &Etcd{
			Endpoint: fmt.Sprintf("http://127.0.0.1:%d", redistest.FreePort(tb)), peer: fmt.Sprintf("http://127.0.0.1:%d", redistest.FreePort(tb)),
			data: directory(tb), state: "new", others: func() []*Etcd { return slices.Concat(members[:i], members[i+1:]) },
		}
		names[i] = fmt.Sprintf("m%d=%s", i, members[i].peer)
	}
	for i, m := range members {
		m.daemon = daemon{
			tb:    tb,
			crash: syscall.SIGKILL,
			ready: func() bool { return ready(m.Endpoint) },
			command: func() *exec.Cmd {
				return exec.Command(binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", m.data,
					"--listen-client-urls", m.Endpoint, "--advertise-client-urls", m.Endpoint,
					"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
					"--initial-cluster", strings.Join(names, ","), "--initial-cluster-state", m.state)
			},
		}
		m.begin()
	}
	for _, m := range members {
		m.await()
	}
	return members
}
