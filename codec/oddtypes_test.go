package codec_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/cacheguard/go/codec"
	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

func TestOddTypesThroughMsgPack(t *testing.T) {
	t.Parallel()
	oddtypes.Expect(t, codec.MsgPack(), map[string]string{
		"a URL with a password":     "unstorable",
		"a chan that is nil":        "unstorable",
		"a complex number":          "unstorable",
		"a func":                    "unstorable",
		"a hidden field":            "oddtypes.tagged.Hidden: it comes back otherwise",
		"a struct behind any":       "map[string]interface {}[…]: a oddtypes.Square comes back as a map[string]interface {}",
		"an int behind any":         "interface {}: a int comes back as a int8",
		"an int in a field of any":  "oddtypes.holder.Of: a int comes back as a int8",
		"an interface with methods": "undecodable",
		"an unexported field":       "oddtypes.inner.b: it comes back otherwise",
		"interfaces with methods":   "undecodable",
		"nothing exported":          "struct { a int }.a: it comes back otherwise",
		"what encodes itself badly": "oddtypes.Flawed: it comes back otherwise",
	})
}

func TestMessagesComeBackThroughProto(t *testing.T) {
	t.Parallel()
	message, err := structpb.NewStruct(map[string]any{"a": 1, "b": []any{true, nil}, "c": map[string]any{"d": "e"}})
	if err != nil {
		t.Fatal(err)
	}
	c := codec.Proto()
	payload, err := c.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var back *structpb.Struct
	if err := c.Unmarshal(payload, &back); err != nil {
		t.Fatal(err)
	}
	if path, what := fidelity.Difference(&message, &back, c.Marshal); what != "" {
		t.Errorf("%s: %s", path, what)
	}
	delete(back.GetFields(), "a")
	if _, what := fidelity.Difference(&message, &back, c.Marshal); what == "" {
		t.Error("a field was lost, and that is not seen")
	}
}
