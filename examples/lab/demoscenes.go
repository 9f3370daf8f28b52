package main

import (
	"strconv"
	"time"
)

func (d *demo) expire() error {
	d.line("1. Nobody has cached the price, and all %d callers want it at once.", 2*callers)
	before := d.table.asked()
	s, err := d.ask(price, d.a, d.b)
	n := d.table.asked() - before
	d.see(n == 1 && s.Values["19.99"] == 2*callers, "%s to the database. %d callers have 19.99, the slowest after %v.", queries(n), s.Values["19.99"], rounded(s.Slowest))
	return err
}

func (d *demo) again() error {
	d.line("2. All of them ask again.")
	before := d.table.asked()
	s, err := d.ask(price, d.a, d.b)
	n := d.table.asked() - before
	d.see(n == 0, "%s: Redis has it. The slowest waited %v.", queries(n), rounded(s.Slowest))
	return err
}

// commitLate shows a mistake, so that the next scene shows what mends it.
func (d *demo) commitLate() error {
	d.line("3. A mistake: A changes the price in an Update, and commits after that has returned. B reads in between.")
	s, err := d.readBetween("update", "17.99")
	d.see(s.Values["19.99"] == callers, "The database has %s. %d callers of B still have 19.99, for up to an hour.", d.table.row(price), s.Values["19.99"])
	return err
}

// readBetween has A write in one way, B read, and A commit, and returns what B reads then.
func (d *demo) readBetween(write, value string) (s seen, err error) {
	if err := d.tell(d.a, order{Do: write, Key: price, Value: value}); err != nil {
		return s, err
	}
	if _, err := d.ask(price, d.b); err != nil {
		return s, err
	}
	if err := d.tell(d.a, order{Do: "commit"}); err != nil {
		return s, err
	}
	return d.ask(price, d.b)
}

func (d *demo) commitUnderIntent() error {
	d.line("4. The same under an intent: Intend, write, somebody reads, commit, Done.")
	s, err := d.readBetween("intend", "15.99")
	d.see(s.Values["15.99"] == callers, "%d of %d callers of B have the new price, 15.99.", s.Values["15.99"], callers)
	return err
}

func (d *demo) revoke() error {
	s, err := d.ask(right, d.a, d.b)
	if err != nil {
		return err
	}
	d.line("5. A right that both have cached (%d callers are let in) is revoked on A.", s.Values["allowed"])
	if err := d.tell(d.a, order{Do: "write", Key: right, Value: "denied"}); err != nil {
		return err
	}
	s, err = d.ask(right, d.a, d.b)
	d.see(s.Values["denied"] == 2*callers, "When the write has returned, %d are let in, on either process.", s.Values["allowed"])
	if err != nil {
		return err
	}
	if err := d.tell(d.a, order{Do: "write", Key: right, Value: "allowed"}); err != nil { // for what follows
		return err
	}
	_, err = d.ask(right, d.a, d.b)
	return err
}

func (d *demo) killRedis() error {
	d.line("6. Redis is killed, and all %d callers ask for the price.", 2*callers)
	for _, w := range d.wires {
		w.set(down)
	}
	before := d.table.asked()
	s, err := d.ask(price, d.a, d.b)
	n := d.table.asked() - before
	d.see(s.Failed == 0 && n <= callers/2, "%d fail. %s: the callers of each process share them. The slowest waited %v.", s.Failed, queries(n), rounded(s.Slowest))
	return err
}

func (d *demo) revokeWithoutRedis() error {
	d.line("7. While Redis is dead, somebody revokes the right on A, which has been granted again.")
	invalidated := d.a.do(order{Do: "write-invalidate", Key: right, Value: "denied"})
	s, err := d.ask(right, d.a, d.b)
	d.see(invalidated.Err != "" && s.Values["denied"] == 2*callers, "Invalidate says that it could not reach Redis. %d are let in: both ask the database.", s.Values["allowed"])
	return err
}

func (d *demo) redisIsBack() error {
	d.line("8. Redis comes back with what it had, and there the right was granted.")
	for _, w := range d.wires {
		w.set(up)
	}
	if err := d.tell(d.a, order{Do: "settle"}); err != nil {
		return err
	}
	s, err := d.ask(right, d.a, d.b)
	d.see(s.Values["denied"] == 2*callers, "A has sent the invalidation that was pending: %d are let in.", s.Values["allowed"])
	if err != nil {
		return err
	}
	return d.tell(d.b, order{Do: "settle"})
}

func (d *demo) killProcess() error {
	d.line("9. A is killed (kill -9) in the middle of a load, and B's callers want that price.")
	if err := d.tell(d.a, order{Do: "settle"}, order{Do: "invalidate", Key: price}); err != nil {
		return err
	}
	before := d.table.asked()
	release := d.table.hold()
	defer release()
	lost := make(chan seen, 1)
	go func() { lost <- d.a.do(order{Do: "get", Key: price, Callers: 1}) }() // joined below; ends with the process
	if err := d.table.awaitQuery(d.ctx, before); err != nil {
		return err
	}
	d.a.kill()
	<-lost
	release()
	began := time.Now()
	s, err := d.ask(price, d.b)
	d.see(s.Failed == 0 && s.Values["15.99"] == callers && d.table.asked()-before == 2,
		"%d fail. After %v, when A's lease was over, B loads: 1 query, and %d callers have 15.99.", s.Failed, rounded(time.Since(began)), s.Values["15.99"])
	return err
}

func queries(n int) string {
	if n == 1 {
		return "1 query"
	}
	return strconv.Itoa(n) + " queries"
}

func rounded(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
