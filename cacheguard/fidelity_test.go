package cacheguard

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

func TestNewCacheRefusesWhatNeverComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	type job struct{ Done chan int }
	cfg := CacheConfig[int, []job]{Name: "job", Load: func(context.Context, int) ([]job, error) { return nil, nil }}
	_, err := NewCache(f.guards[0], cfg)
	if err == nil || !strings.Contains(err.Error(), "CacheConfig.Codec") || !strings.Contains(err.Error(), "job.Done: a chan int") {
		t.Errorf("error %v", err)
	}
	type drawing struct {
		Layers map[string][]*struct{ Of oddtypes.Shape }
	}
	_, err = NewCache(f.guards[0], CacheConfig[int, drawing]{Name: "drawing", Load: func(context.Context, int) (drawing, error) { return drawing{}, nil }})
	if err == nil || !strings.Contains(err.Error(), "drawing.Layers.Of: nothing says which type") {
		t.Errorf("error %v", err)
	}
	cfg.Codec = exitCodec{} // it may know what nobody else does
	_, err = NewCache(f.guards[0], cfg)
	expect.Equal(t, "with a Codec", err, nil)
}
