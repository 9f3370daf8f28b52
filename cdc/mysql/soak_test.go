package mysql

import (
	"context"
	"testing"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled runs a few rounds; SOAK=100 a hundred.
func TestNothingIsOldAfterCatchUpWhateverWasWrittenAndKilled(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Socket)
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint)")
	relay, err := distance.Start(server.Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	fleet := feedtest.StartFleet(w.Shop, 2, func() *redistest.Process { return w.child("NOTES=1", "CONN=root@tcp("+relay.Addr()+")/"+w.name) })
	f, err := New(w.config(w.Rows(w.name+".products"), feedtest.Notes(w.name+".notes", w.Products)))
	if err != nil {
		t.Fatal(err)
	}
	s := &feedtest.Soak{Shop: w.Shop, Dialect: feedtest.MariaDB, Feed: f, Exec: feedtest.Attempt(w.db), Truth: feedtest.Products(w.db), Fleet: fleet}
	s.Position = func(ctx context.Context) uint64 {
		at, _, _ := f.stored(ctx) // 0 is not known
		return at.number()
	}
	s.Troubles = append(s.Common(w.redis), []feedtest.Trouble{
		{Name: "the network was cut", Make: relay.Break},
		{Name: "the position was lost", Make: func() { _ = w.Client.Del(w.Context(), f.key).Err() }}, // Redis answers
		{Name: "the database was restarted", Make: func() {
			server.Kill()
			server.Start()
		}},
	}...)
	s.Run(feedtest.Rounds(len(s.Troubles)))
}
