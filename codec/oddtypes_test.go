package codec_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/cacheguard/go/codec"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

func TestOddTypesThroughMsgPack(t *testing.T) {
	t.Parallel()
	problems := map[string]string{
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
	}
	oddtypes.Expect(t, codec.MsgPack(), problems)
	oddtypes.ExpectOf(t, problems, lookBy(t, codec.MsgPack()))
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
	_, err = codec.Checked(c).Marshal(message)
	expect.ErrorIs(t, err)
	var back *structpb.Struct
	if err := c.Unmarshal(payload, &back); err != nil {
		t.Fatal(err)
	}
	if path, what := roundtrip.Difference(&message, &back, c.Marshal); what != "" {
		t.Errorf("%s: %s", path, what)
	}
	delete(back.GetFields(), "a")
	if _, what := roundtrip.Difference(&message, &back, c.Marshal); what == "" {
		t.Error("a field was lost, and that is not seen")
	}
}
