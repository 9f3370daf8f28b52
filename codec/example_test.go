package codec_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/codec"
	"github.com/cacheguard/go/memory"
)

func ExampleProto() {
	rdb, err := memory.New(memory.Config{MaxBytes: 1 << 20}) // or redis.NewClient
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Codec: codec.Proto()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	// V is a pointer to a message that protoc-gen-go made.
	at, err := cacheguard.Get(context.Background(), guard, "release", func(context.Context) (*timestamppb.Timestamp, error) {
		return timestamppb.New(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)), nil
	})
	fmt.Println(at.AsTime().Year(), err)
	// Output: 2026 <nil>
}

type product struct {
	Name  string `msgpack:"name"`
	Price int    `msgpack:"price"`
}

func TestMsgPackAndCompressionWorkTogether(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{Codec: codec.MsgPack(), Compression: codec.Zstd(1 << 10)})
	for range 2 {
		got, err := cacheguard.Get(t.Context(), env.Guard, "tea", func(context.Context) (product, error) {
			return product{Name: long, Price: 3}, nil
		})
		if err != nil || got != (product{Name: long, Price: 3}) {
			t.Fatal(got, err)
		}
		env.Settle()
	}
	if n := env.Loads("tea"); n != 1 {
		t.Errorf("%d loads, want 1", n)
	}
}

type note struct {
	Text string
	By   any
}

func ExampleChecked() {
	cfg, isCanary := cacheguard.Config{Codec: codec.MsgPack()}, true
	if isCanary { // one instance, as its environment says
		cfg.Codec = codec.Checked(cfg.Codec)
	}

	_, err := cfg.Codec.Marshal(note{"sold out", 42})
	var altered *codec.AlteredError
	if errors.As(err, &altered) { // as EventUnstorable has it
		fmt.Println(altered.Path, "-", altered.Problem)
	}
	// Output: codec_test.note.By - a int comes back as a int8
}
