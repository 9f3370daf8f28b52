package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

// Lose has a member lose its data, and starts it without any. Others take it out of the cluster before, and in again: it is a new one
// at the same place. One that is alone begins anew.
func (m *Etcd) Lose() {
	m.tb.Helper()
	m.Kill()
	m.lose(m.data)
	if others := m.others(); len(others) > 0 {
		m.retry("member/remove", func() error { return m.leave(others) })
		m.retry("member/add", func() error { return ask(others, "add", map[string][]string{"peerURLs": {m.peer}}, nil) })
		m.state = "existing"
	}
	m.Start()
}

// leave takes it out of the cluster.
func (m *Etcd) leave(others []*Etcd) error {
	var list struct {
		Members []struct {
			ID       string
			PeerURLs []string
		}
	}
	if err := ask(others, "list", struct{}{}, &list); err != nil {
		return err
	}
	for _, member := range list.Members {
		if slices.Contains(member.PeerURLs, m.peer) {
			return ask(others, "remove", map[string]string{"ID": member.ID}, nil)
		}
	}
	return nil // it is out already
}

// ask asks one of the members, in the JSON of etcd's gateway.
func ask(members []*Etcd, what string, request, answer any) (err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for _, m := range members {
		var response *http.Response
		response, err = client.Post(m.Endpoint+"/v3/cluster/member/"+what, "application/json", bytes.NewReader(body))
		if err != nil {
			continue
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", what, response.Status)
			continue
		}
		if answer == nil {
			return nil
		}
		return json.NewDecoder(response.Body).Decode(answer)
	}
	return err
}

// retry does something until it succeeds: after a change of leaders it may not, for a while.
func (d *daemon) retry(what string, do func() error) {
	d.tb.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var err error
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if err = do(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.tb.Fatalf("%s: %v", what, err)
		}
	}
}
