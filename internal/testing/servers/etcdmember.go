package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

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
