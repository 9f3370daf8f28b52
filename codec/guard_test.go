package codec_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/codec"
)

var long = strings.Repeat("what is said twice can be said shorter. ", 100)

// get is a Get that has to return the long string.
func get(t *testing.T, g *cacheguard.Guard) {
	t.Helper()
	got, err := cacheguard.Get(t.Context(), g, "k", func(context.Context) (*wrapperspb.StringValue, error) {
		return wrapperspb.String(long), nil
	})
	if err != nil || got.GetValue() != long {
		t.Fatalf("%d bytes, %v", len(got.GetValue()), err)
	}
}

// size is how large the entry is in Redis.
func size(t *testing.T, env *cacheguardtest.Env) int64 {
	t.Helper()
	env.Settle()
	n, err := env.Redis.StrLen(t.Context(), "cacheguard:{k}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAFleetCanChangeItsCompressionWithoutAFlush(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{Codec: codec.Proto(), Compression: codec.Zstd(100)})
	other, err := cacheguard.New(env.Redis, cacheguard.Config{Codec: codec.Proto(), Compression: codec.S2(100)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	get(t, env.Guard)
	if n := size(t, env); n > int64(len(long)/5) {
		t.Errorf("the entry has %d bytes", n)
	}
	get(t, other)
	if n := env.Loads("k"); n != 1 {
		t.Errorf("%d loads, want one for both", n)
	}

	none, err := cacheguard.New(env.Redis, cacheguard.Config{Codec: codec.Proto()})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	for range 3 {
		for _, g := range []*cacheguard.Guard{none, env.Guard, other} {
			get(t, g)
		}
	}
	if n := env.Loads("k"); n != 2 {
		t.Errorf("%d loads, want one more for the instance without compression", n)
	}
	if n := size(t, env); n < int64(len(long)) {
		t.Errorf("the entry has %d bytes: not all can read it", n)
	}
}

// How a message holds what it has changes while somebody encodes it, which the kit does for each caller.
func TestCallersOfAMessageDoNotRaceInTheKit(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{Codec: codec.Proto()})
	var asking sync.WaitGroup
	for range 64 {
		asking.Go(func() {
			for i := range 20 {
				got, err := cacheguard.Get(t.Context(), env.Guard, fmt.Sprint(i), func(context.Context) (*timestamppb.Timestamp, error) {
					return timestamppb.New(time.Unix(int64(i), 0)), nil
				})
				if err == nil {
					_, err = proto.Marshal(got)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
}
