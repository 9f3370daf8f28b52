package consistency

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// transactionSteps are after what a process can be harmed.
var transactionSteps = []string{"intended", "begun", "also", "written", "committed", "done"}

// transaction changes two rows. It knows one of them when it begins.
type transaction struct {
	cache guarded
	named [2]int
	at    func(step string, versions [2]int64) // is told how far it has come
}

// run returns the versions that it has written, when that is done.
func (x *transaction) run(ctx context.Context) (versions [2]int64, err error) {
	names := []string{keyOf(x.named[0]), keyOf(x.named[1])}
	in, err := x.cache.Guard().Intend(ctx, x.cache.Changes(names[0]))
	if err != nil {
		return versions, err
	}
	defer func() { _ = in.Done(ctx) }() // the second one does nothing
	x.at("intended", versions)
	tx, err := x.cache.source.Begin(ctx)
	if err != nil {
		return versions, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after the commit it does nothing
	inOrder := slices.Sorted(slices.Values(names))                 // the database has locks, too
	if _, err = tx.Exec(ctx, "SELECT 1 FROM item WHERE key = ANY($1) ORDER BY key FOR UPDATE", inOrder); err != nil {
		return versions, err
	}
	x.at("begun", versions)
	if err = in.Also(ctx, x.cache.Changes(names[1])); err != nil {
		return versions, err
	}
	x.at("also", versions)
	if versions, err = raise(ctx, tx, names); err != nil {
		return versions, err
	}
	x.at("written", versions)
	if err = tx.Commit(ctx); err != nil {
		return versions, err
	}
	x.at("committed", versions)
	err = in.Done(ctx)
	x.at("done", versions)
	return versions, err
}

func raise(ctx context.Context, tx pgx.Tx, names []string) (versions [2]int64, err error) {
	for i, name := range names {
		err = tx.QueryRow(ctx, "UPDATE item SET version = version + 1 WHERE key = $1 RETURNING version", name).Scan(&versions[i])
		if err != nil {
			return versions, err
		}
	}
	return versions, nil
}

func TestChildThatWritesInTransactions(t *testing.T) {
	if redistest.IsChild(t) {
		transactAsChild(t)
	}
}

// transactAsChild is what a child does until the parent stops it. In its fifth transaction or later, it waits at its step until the parent lets it go on.
func transactAsChild(t *testing.T) {
	c := openTransacting(t, os.Getenv("ARENA"), strings.Split(os.Getenv("ADDRS"), ","), openRows(t, os.Getenv("DATABASE_URL")))
	log, err := os.OpenFile(os.Getenv("LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() }) // every line has been written by then
	ctx, cancel := context.WithCancel(context.Background())
	goOn := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // owner: the test; stop: lines from the parent, or its end; joined below
		in := bufio.NewReader(os.Stdin)
		_, _ = in.ReadString('\n')
		close(goOn)
		_, _ = in.ReadString('\n')
		cancel()
	})
	w := &worker{cache: c, log: log}
	for range 4 { // owner: the test; stop: ctx; joined below
		all.Go(func() { w.repeat(ctx, 0, w.read) })
	}
	all.Go(func() { // owner: the test; stop: ctx; joined below
		waited := false
		for n := 0; ctx.Err() == nil; n++ {
			a := rand.N(keys)
			named := [2]int{a, (a + 1 + rand.N(keys-1)) % keys}
			w.transact(c, named, func(step string, versions [2]int64) {
				if n >= 4 && !waited && step == os.Getenv("STEP") {
					waited = true
					fmt.Println(named[0], versions[0], named[1], versions[1])
					<-goOn
				}
			})
		}
	})
	all.Wait()
}

func (w *worker) transact(c guarded, named [2]int, at func(string, [2]int64)) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	called := now()
	versions, err := (&transaction{c, named, at}).run(ctx)
	if err != nil {
		return
	}
	returned := now()
	for i, key := range named {
		w.note(event{"updated", 0, key, versions[i], called, returned})
	}
}
