package epoch

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

//go:embed lua/*.lua
var files embed.FS

var (
	makeScript, revokeScript = script.Compile(files, "until", "make"), script.Compile(files, "revoke")
	intendScript, doneScript = script.Compile(files, "until", "intend"), script.Compile(files, "until", "done")
)

// ttl is how long an epoch stays after it was last asked for by make. When it goes, its entries are invalid.
const ttl = 30 * 24 * time.Hour

// make returns the epochs at the keys, which are of one part, as they are at one moment. It makes missing ones.
func (e *Epochs) make(ctx context.Context, keys []string) ([]protocol.Epoch, error) {
	call := &script.Call{Script: makeScript, Keys: withUntils(keys), Args: []any{rand.Text(), script.Millis(ttl)}}
	cmd, err := e.Link.Do(ctx, keys[0], &send.Call{Script: call, Rank: send.HoldsSlot})
	if err != nil {
		return nil, err
	}
	reply, err := cmd.StringSlice()
	if err == nil && len(reply) != len(keys) {
		err = fmt.Errorf("%d epochs for %d names", len(reply), len(keys))
	}
	if err != nil {
		return nil, err
	}
	all := make([]protocol.Epoch, len(keys))
	for i := range reply {
		all[i] = protocol.EpochOf([]byte(reply[i]))
	}
	return all, nil
}

// Revoke is the call that ends the name's epoch in a part of the keyspace, and publishes the notice.
func (e *Epochs) Revoke(name string, part int, notice string) *script.Call {
	return &script.Call{Script: revokeScript, Keys: e.revoked(name, part), Args: []any{e.Channel, notice}}
}

// RevokeInSteps does what Revoke does, with commands of one key each, for the time in which the slot of the keys is
// moved to another node. The epoch of all tags goes first: a load that began before, and names the tag at its end, must
// not find that one when the tag's own is gone.
func (e *Epochs) RevokeInSteps(name string, part int, notice string) (steps [][]*script.Call) {
	for _, key := range slices.Backward(e.revoked(name, part)) {
		steps = append(steps, []*script.Call{protocol.Delete(key)})
	}
	return append(steps, []*script.Call{protocol.Publish(e.Channel, notice)})
}

// Intend is the call that lets an intent of a transaction stand on a tag, in a part of the keyspace, for as long as
// lasting: until then, or until it is done, no epoch of the tag lasts longer than it. The intent is any text that no
// other one has.
func (e *Epochs) Intend(name string, part int, intent string, lasting time.Duration, notice string) *script.Call {
	call := e.RenewIntend(name, part, intent, lasting)
	call.Args = append(call.Args, e.Channel, notice)
	return &call
}

// RenewIntend extends it.
func (e *Epochs) RenewIntend(name string, part int, intent string, lasting time.Duration) script.Call {
	return script.Call{
		Script: intendScript, Keys: withUntils(e.revoked(name, part)), Args: []any{intent, script.Millis(lasting), script.Millis(protocol.Aftermath)},
	}
}

// Done ends it, and the name's epoch.
func (e *Epochs) Done(name string, part int, intent, notice string) *script.Call {
	return &script.Call{Script: doneScript, Keys: withUntils(e.revoked(name, part)), Args: []any{e.Channel, notice, intent}}
}

// revoked are the keys of the epochs that go with the name's.
func (e *Epochs) revoked(name string, part int) []string {
	keys := []string{e.Key(name, part)}
	if name[0] == tagLetter {
		keys = append(keys, e.parts[part].anyTag)
	}
	return keys
}

// withUntils are the keys of epochs, and then those of the intents on their names. A name begins with another letter.
func withUntils(epochs []string) []string {
	keys := append(make([]string, 0, 2*len(epochs)), epochs...)
	for _, key := range epochs {
		keys = append(keys, strings.Replace(key, "}:epoch", "}:epoch:until", 1))
	}
	return keys
}

// Source is the text of a script as Redis gets it, for tests that pick it out of the traffic; empty: there is no such
// script.
func Source(name string) string {
	return map[string]*script.Script{
		"make": makeScript, "revoke": revokeScript, "intend_tag": intendScript, "done_tag": doneScript,
	}[name].Source()
}
