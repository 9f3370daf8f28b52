package main

import (
	"io"
	"net"
	"testing"
	"time"
)

// ends returns both ends of a connection through a wire.
func ends(t *testing.T) (w *wire, client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if w, err = openWire("tcp", l.Addr().String(), up); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	if client, err = net.Dial("tcp", w.listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return w, client, server
}

func pass(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestAFrozenWireKeepsBackWhatItIsGiven(t *testing.T) {
	t.Parallel()
	w, client, server := ends(t)
	pass(t, client, server, "before")
	w.set(frozen)
	if _, err := io.WriteString(client, "kept"); err != nil {
		t.Fatal(err)
	}
	if w.gate.TryRLock() {
		t.Fatal("the gate is open")
	}
	w.set(up)
	got := make([]byte, len("kept"))
	if _, err := io.ReadFull(server, got); err != nil || string(got) != "kept" {
		t.Fatalf("%q, %v", got, err)
	}
	pass(t, server, client, "after")
}

func TestAWireMayBeLong(t *testing.T) {
	t.Parallel()
	w, client, server := ends(t)
	const late = 100 * time.Millisecond
	w.late.Store(int64(late))
	began := time.Now()
	pass(t, client, server, "late")
	if took := time.Since(began); took < late {
		t.Error(took)
	}
	pass(t, server, client, "the answer, at once")
	w.late.Store(int64(time.Hour))
	_, _ = io.WriteString(client, "under way") // it may fail
	w.set(down)
	if got, _ := io.ReadAll(server); len(got) > 0 {
		t.Errorf("%q came through", got)
	}
}

func TestAWireThatIsCutPassesNothingAnyMore(t *testing.T) {
	t.Parallel()
	for _, before := range []flow{up, frozen} {
		w, client, server := ends(t)
		pass(t, client, server, "before")
		w.set(before)
		if before == frozen {
			if _, err := io.WriteString(client, "kept"); err != nil {
				t.Fatal(err)
			}
		}
		w.set(down)
		_, _ = io.WriteString(client, "after") // it may fail
		if got, _ := io.ReadAll(server); len(got) > 0 {
			t.Errorf("after %s, %q came through", before, got)
		}
		c, err := net.Dial("tcp", w.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("it takes new connections")
		}
		_ = c.Close()
	}
}
