package codec_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/codec"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

// lookBy encodes a value as a Guard does, and returns the error of a Codec that checks.
func lookBy(t *testing.T, c protocol.Codec) func(oddtypes.Value) error {
	return func(v oddtypes.Value) error {
		kind, payload, err := v.Encode(codec.Checked(c), v.Of)
		var altered *codec.AlteredError
		if errors.As(err, &altered) {
			return &roundtrip.Error{Path: altered.Path, Problem: altered.Problem, Err: altered.Err}
		}
		if err == nil {
			_, plain, err := v.Encode(cmp.Or[protocol.Codec](c, jsonCodec{}), v.Of)
			expect.ErrorIs(t, err, nil)
			expect.Equal(t, "the entry is as without it", string(payload), string(plain))
			_, err = v.Decode(codec.Checked(c), protocol.Entry{Kind: kind, Payload: payload})
			expect.ErrorIs(t, err, nil)
		}
		return err
	}
}

type drawing struct{ Of any }

func TestCheckedNamesTheFieldAndWhatTheCodecSaid(t *testing.T) {
	t.Parallel()
	_, err := codec.Checked(nil).Marshal(drawing{7})
	var altered *codec.AlteredError
	expect.Equal(t, "is an AlteredError", errors.As(err, &altered), true)
	expect.Equal(t, "path", altered.Path, "codec_test.drawing.Of")
	expect.Equal(t, "error", err.Error(), "codec: the value does not come back as it was: codec_test.drawing.Of: a int comes back as a float64")
	expect.ErrorIs(t, altered.Err, nil)
	payload, err := codec.Checked(nil).Marshal(drawing{7.5})
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "payload", string(payload), `{"Of":7.5}`)

	var back drawing
	expect.ErrorIs(t, codec.Checked(nil).Unmarshal(payload, &back), nil)
	expect.Equal(t, "back", back.Of, any(7.5))
	payload, err = codec.Checked(nil).Marshal(nil)
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "nothing", string(payload), "null")

	_, err = codec.Checked(codec.Proto()).Marshal(7)
	if err == nil || errors.As(err, &altered) || !strings.Contains(err.Error(), "int is no proto.Message") {
		t.Errorf("what inner refuses is its error: %v", err)
	}
	_, err = codec.Checked(oneWay{}).Marshal(7)
	expect.ErrorIs(t, err, errOneWay)
	expect.Equal(t, "is an AlteredError", errors.As(err, &altered) && altered.Path == "int", true)
}

var errOneWay = errors.New("there is no way back")

// oneWay is a Codec that does not decode.
type oneWay struct{}

func (oneWay) Marshal(any) ([]byte, error) { return []byte("7"), nil }
func (oneWay) Unmarshal([]byte, any) error { return errOneWay }

// The other instances store such a value, and the canary reads what they store.
func TestACanaryGivesAValueThatDoesNotComeBackToItsCallersAndDoesNotStoreIt(t *testing.T) {
	t.Parallel()
	rdb, refused := redistest.Start(t).Client(t), make(chan error, 1)
	open := func(cfg cacheguard.Config) *cacheguard.Guard {
		cfg.RedisTimeout = redistest.Patience
		g, err := cacheguard.New(rdb, cfg)
		expect.ErrorIs(t, err)
		t.Cleanup(func() { expect.ErrorIs(t, g.Close()) })
		return g
	}
	canary := open(cacheguard.Config{
		Codec: codec.Checked(nil), Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventUnstorable, func(_ context.Context, e cacheguard.Event) { refused <- e.Err })},
	})
	other := open(cacheguard.Config{})
	get := func(g *cacheguard.Guard, loaded, want any) {
		v, err := cacheguard.Get(t.Context(), g, "k", func(context.Context) (any, error) { return loaded, nil })
		expect.ErrorIs(t, err)
		expect.Equal(t, "value", v, want)
	}
	get(canary, 7, 7)
	var altered *codec.AlteredError
	redistest.Await(t, "the canary refuses it", func() bool { return len(refused) > 0 })
	if err := <-refused; !errors.As(err, &altered) || altered.Path != "interface {}" {
		t.Errorf("refused: %v", err)
	}
	get(other, 7, 7)
	redistest.Await(t, "the other one stores it", func() bool { return other.Stats().BytesWritten > 0 })
	get(canary, 8, 7.)
	expect.Equal(t, "bytes that the canary wrote", canary.Stats().BytesWritten, 0)
}

func TestOddTypesThroughCheckedJSON(t *testing.T) {
	t.Parallel()
	oddtypes.ExpectOf(t, oddtypes.NotThroughJSON, lookBy(t, jsonCodec{}))
	oddtypes.ExpectOf(t, oddtypes.NotThroughJSON, lookBy(t, nil))
}

// jsonCodec is what nil stands for.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
