package write

import (
	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/script"
)

// target is what an invalidation removes: a key, or the epoch of a name in a part of the keyspace. A name has an epoch
// in each part, and each part is sent, and may fail, for itself.
type target struct {
	sort
	part int
	name string
}

// sort is what the targets of a sort have of their own: the calls, and who forgets. Its implementations follow.
type sort interface {
	announce(r *request) *script.Call // lets the change with the request's text stand
	renew(r *request) script.Call
	end(r *request) *script.Call // removes the target, and ends the change
	invalidate(r *request) *script.Call
	steps(r *request) [][]*script.Call // do what invalidate does, one key each
	notice(t target) string            // is the next message that local tiers are to forget it
	forget(t target)                   // makes this process forget it
	shown(t target) string             // is the target as errors have it
}

// keys are targets that are keys; changes that are announced on them are shared.
type keys struct{ *Writes }

func (k keys) at(t target) string { return k.Keys.ValueKey(t.name) }

func (k keys) announce(r *request) *script.Call {
	return k.Keys.Intend(k.at(r.target), r.text, k.lasting(r.place), r.told)
}

func (k keys) renew(r *request) script.Call {
	return k.Keys.RenewIntend(k.at(r.target), r.text, k.lasting(r.place))
}

func (k keys) invalidate(r *request) *script.Call { return k.Keys.Invalidate(k.at(r.target), r.told) }
func (k keys) end(r *request) *script.Call        { return k.Keys.Done(k.at(r.target), r.text, r.told) }
func (k keys) steps(r *request) [][]*script.Call {
	return k.Keys.InvalidateInSteps(k.at(r.target), r.told)
}
func (k keys) notice(t target) string { return k.Notices.Next(t.part, t.name) }
func (k keys) forget(t target)        { k.Owner.Local().Forget(t.name) }
func (k keys) shown(t target) string  { return t.name }

// exclusive are the keys of an update: nobody stores a value while it stands, and it may end with one.
type exclusive struct {
	keys
	by *Update
}

func (e exclusive) renew(r *request) script.Call { return e.Keys.RenewUpdate(e.at(r.target), r.text) }

func (e exclusive) announce(r *request) *script.Call {
	return e.Keys.BeginUpdate(e.by.valueKey(r.name), r.text, r.told, e.by.lasting())
}

func (e exclusive) end(r *request) *script.Call {
	return e.Keys.EndUpdate(e.by.valueKey(r.name), r.text, r.told, e.by.filling)
}

// epochs are targets that are epochs of names: a tag, a kind, everything.
type epochs struct{ *Writes }

func (e epochs) announce(r *request) *script.Call {
	return e.Epochs.Intend(r.name, r.part, r.text, e.lasting(r.place), r.told)
}

func (e epochs) renew(r *request) script.Call {
	return e.Epochs.RenewIntend(r.name, r.part, r.text, e.lasting(r.place))
}

func (e epochs) end(r *request) *script.Call        { return e.Epochs.Done(r.name, r.part, r.text, r.told) }
func (e epochs) invalidate(r *request) *script.Call { return e.Epochs.Revoke(r.name, r.part, r.told) }
func (e epochs) steps(r *request) [][]*script.Call {
	return e.Epochs.RevokeInSteps(r.name, r.part, r.told)
}
func (e epochs) notice(t target) string { return e.Notices.NextOfMany(t.part, t.name) }
func (e epochs) shown(t target) string  { return epoch.Shown(t.name) }

func (e epochs) forget(t target) {
	e.Epochs.Forget(t.name, t.part)
	e.Owner.Local().ForgetMany(t.name)
}

func (t target) isEpoch() bool {
	_, is := t.sort.(epochs)
	return is
}

// key is a key as the sort has it.
func (w *Writes) key(of sort, key string) target {
	return target{of, w.Breakers.Part(w.Keys.ValueKey(key)), key}
}

// targets are keys, and the epochs of names in all parts of the keyspace.
func (w *Writes) targets(named, names []string) []target {
	all := make([]target, 0, len(named)+len(names)*w.Epochs.Parts())
	for _, key := range named {
		all = append(all, w.key(keys{w}, key))
	}
	for part := range w.Epochs.Parts() {
		for _, name := range names {
			all = append(all, target{epochs{w}, part, name})
		}
	}
	return all
}
