package invalidate

import (
	"strconv"
	"strings"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/script"
)

// OfEpochs sends the invalidations of names: a tag, a kind, everything. A name has an epoch in each part of the
// keyspace, and each part is sent, and may fail, for itself.
type OfEpochs struct {
	Sender

	epochs *epoch.Epochs
}

// OpenEpochs has the Sender send invalidations of epochs.
func (o *OfEpochs) OpenEpochs(w *Writer, epochs *epoch.Epochs) {
	o.epochs = epochs
	o.open(w, ofEpochs{w, epochs})
}

// ofEpochs are invalidations of epochs, by their IDs.
type ofEpochs struct {
	*Writer

	epochs *epoch.Epochs
}

func (o ofEpochs) Part(id string) (part int, shown string) {
	part, name := PartAndName(id)
	return part, epoch.Shown(name)
}

func (o ofEpochs) Call(id, notice string) *script.Call {
	part, name := PartAndName(id)
	return o.epochs.Revoke(name, part, notice)
}

func (o ofEpochs) Steps(id, notice string) [][]*script.Call {
	part, name := PartAndName(id)
	return o.epochs.RevokeInSteps(name, part, notice)
}

func (o ofEpochs) Notice(id string) string { return o.Notices.NextOfMany(PartAndName(id)) }

func (o ofEpochs) ForgetLocal(ids []string) {
	for _, id := range ids {
		part, name := PartAndName(id)
		o.epochs.Forget(name, part)
		o.Local().ForgetMany(name)
	}
}

// InAllParts are the ids of the names.
func (o *OfEpochs) InAllParts(names []string) (ids []string) {
	for part := range o.epochs.Parts() {
		for _, name := range names {
			ids = append(ids, ID(part, name))
		}
	}
	return ids
}

// ID stands for the epoch of a name in a part.
func ID(part int, name string) string { return strconv.Itoa(part) + ":" + name }

// PartAndName takes an ID apart.
func PartAndName(id string) (part int, name string) {
	digits, name, _ := strings.Cut(id, ":")
	part, _ = strconv.Atoi(digits) // ID made it
	return part, name
}

// Moment is where the changes of what is pending stand, for package epoch, as Quiet and Had.
func (o *OfEpochs) Moment() uint64 { return o.moment.Load() }

// Quiet reports whether nothing was pending at any time since the moment.
func (o *OfEpochs) Quiet(since uint64) bool {
	return o.count.Load() == 0 && o.moment.Load() == since
}

// Had reports whether the name's invalidation in that part was pending at any time since the moment.
func (o *OfEpochs) Had(name string, part int, since uint64) bool {
	return o.Pending.Had(ID(part, name), since)
}
