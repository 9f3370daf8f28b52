package invalidate

import (
	"strconv"
	"strings"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/script"
)

// OfEpochs sends the invalidations of names: a tag, a kind, everything. A name has an epoch in each part of the keyspace, and each part is sent,
// and may fail, for itself.
type OfEpochs struct {
	Sender

	epochs *epoch.Epochs
}

// OpenEpochs makes the Sender that of the epochs.
func (o *OfEpochs) OpenEpochs(w *Writer, epochs *epoch.Epochs, notices *tier.Notices, local func() *tier.Local) {
	o.epochs = epochs
	o.Open(w, Sort{
		Part: func(id string) int { part, _ := PartAndName(id); return part },
		Call: func(id, notice string) *script.Call {
			part, name := PartAndName(id)
			return epochs.Revoke(name, part, notice)
		},
		Notice: func(id string) string { return notices.NextOfMany(PartAndName(id)) },
		ForgetLocal: func(ids []string) {
			for _, id := range ids {
				part, name := PartAndName(id)
				epochs.Forget(name, part)
				local().ForgetMany(name)
			}
		},
		Shown: func(id string) string { _, name := PartAndName(id); return epoch.Shown(name) },
		Steps: func(id, notice string) [][]*script.Call {
			part, name := PartAndName(id)
			return epochs.RevokeInSteps(name, part, notice)
		},
	})
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
