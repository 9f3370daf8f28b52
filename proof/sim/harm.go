package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// harm makes things go wrong until the workers have done their work.
func (w *world) harm(random *rand.Rand, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(rand64(random, 3*w.plan.pause/2)):
		}
		in := w.instances[random.IntN(len(w.instances))]
		switch random.IntN(9) {
		case 0:
			w.truth.note("%s is cut off", in.name)
			in.net.setCut(true)
		case 1, 2:
			w.heal()
		case 3:
			d := rand64(random, longestStop)
			w.truth.note("%s hears nothing for %v", in.name, d)
			in.net.stand(d)
		case 8:
			d := maxLag + rand64(random, longestStop)
			w.truth.note("%s hears no messages for %v", in.name, d)
			in.net.deafen(d)
		case 4, 5:
			n := 1 + random.IntN(4)
			w.truth.note("%s loses %d replies", in.name, n)
			in.net.lose(n)
		case 6:
			w.evict(random)
		case 7:
			if random.IntN(4) == 0 && in != w.instances[0] {
				w.kill(in)
			}
		}
	}
}

// heal ends what goes wrong, but for the dead, whose networks have ended.
func (w *world) heal() {
	for _, in := range w.instances {
		in.net.setCut(false)
		in.net.stand(0)
		in.net.deafen(0)
		in.net.lose(0)
	}
	w.truth.note("the network is well")
}

// evict makes Redis evict an entry, an epoch, or another key without fields: not a lock, a lease or an intent.
func (w *world) evict(random *rand.Rand) {
	conn, err := w.redis.Options().Dialer(context.Background(), "", "")
	if err != nil {
		w.truth.complain("evict: %v", err)
		return
	}
	keys := conn.(interface{ Texts() []string }).Texts() // no command of the library lists keys
	_ = conn.Close()                                     // always nil
	if len(keys) > 0 {
		key := keys[random.IntN(len(keys))]
		if err := w.redis.Del(context.Background(), key).Err(); err != nil {
			w.truth.complain("evict: %v", err)
		}
		w.truth.note("Redis evicts %q", key)
	}
}

// kill cuts an instance off for good. From now on, nobody sees what it does.
func (w *world) kill(in *instance) {
	w.truth.mu.Lock()
	in.dead = true
	w.truth.mu.Unlock()
	in.net.die()
	w.truth.note("%s dies", in.name)
}
