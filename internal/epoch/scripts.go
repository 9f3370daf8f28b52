package epoch

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/make.lua
var makeSource string

//go:embed lua/revoke.lua
var revokeSource string

var makeScript, revokeScript = script.New(makeSource), script.New(revokeSource)

// ttl is how long an epoch stays after it was last asked for by make. When it goes, its entries are invalid.
const ttl = 30 * 24 * time.Hour

// make returns the epochs at the keys, which are of one part, as they are at one moment. It makes those that are not there.
func (e *Epochs) make(ctx context.Context, keys []string) ([]protocol.Epoch, error) {
	call := &script.Call{Script: makeScript, Keys: keys, Args: []any{rand.Text(), script.Millis(ttl)}}
	cmd, err := e.link.Do(ctx, keys[0], &link.Call{Script: call, Rank: link.HoldsSlot})
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
	keys := []string{e.Key(name, part)}
	if name[0] == tagLetter {
		keys = append(keys, e.parts[part].anyTag)
	}
	return &script.Call{Script: revokeScript, Keys: keys, Args: []any{e.channel, notice}}
}

// Source is the text of a script as Redis gets it, for tests that pick it out of the traffic; empty: there is no such script.
func Source(name string) string {
	return map[string]*script.Script{"make": makeScript, "revoke": revokeScript}[name].Source()
}
