package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/observe"
)

// longest is how many bytes a key, a tag or the name of a lock may have to be looked up.
const longest = 8 << 10

// foundKey is what there is of a key. Durations are in seconds.
type foundKey struct {
	Key      string       `json:"key"`
	State    string       `json:"state"`
	Text     string       `json:"text"` // all of it, for people
	Age      float64      `json:"age"`
	FreshFor float64      `json:"fresh_for"`
	KeptFor  float64      `json:"kept_for"`
	Size     int          `json:"size"`
	Tags     []string     `json:"tags"`
	Load     *foundHolder `json:"load"`
	Waiting  int          `json:"waiting"`
	Writers  int          `json:"writers"`
	Failure  string       `json:"failure"`
	Problem  string       `json:"problem"` // why Redis was not asked with success; empty: it was
}

type foundHolder struct {
	Instance string  `json:"instance"`
	For      float64 `json:"for"`
	Left     float64 `json:"left"`
}

// lookUp inspects a key. When Redis does not answer, what this process knows is there all the same.
func (g *guard) lookUp(ctx context.Context, key string) (any, error) {
	if err := nameable("key", key); err != nil {
		return nil, err
	}
	i, err := g.Inspect(ctx, key)
	found := foundKey{
		Key: key, State: string(i.State), Text: i.String(), Age: i.Age.Seconds(), FreshFor: i.FreshFor.Seconds(), KeptFor: i.KeptFor.Seconds(),
		Size: i.Size, Tags: append([]string{}, i.Tags...), Load: holder(i.Load), Waiting: i.Waiting, Writers: len(i.Writers),
	}
	if i.Failure != nil {
		found.Failure = i.Failure.Message
	}
	if err != nil {
		found.Problem, found.State, found.Text = err.Error(), "unknown", i.Here.String()
	}
	return found, nil
}

func holder(h *cacheguard.Holder) *foundHolder {
	if h == nil {
		return nil
	}
	return &foundHolder{h.Instance, h.For.Seconds(), h.Left.Seconds()}
}

// foundLock is what Redis knows of a lock.
type foundLock struct {
	Name           string  `json:"name"`
	Kind           string  `json:"kind"`
	Instance       string  `json:"instance"`
	Token          string  `json:"token"`
	Holders        int     `json:"holders"`
	Fence          int64   `json:"fence"`
	Left           float64 `json:"left"`
	Waiting        int     `json:"waiting"`
	WaitingReaders int     `json:"waiting_readers"`
}

func lookUp(ctx context.Context, l observe.Locker, name string) (any, error) {
	if err := nameable("name", name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	i, err := l.Inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	return foundLock{
		Name: name, Kind: l.Kind, Instance: i.Instance, Token: i.Token, Holders: i.Holders, Fence: i.Fence, Left: i.Left.Seconds(),
		Waiting: i.Waiting, WaitingReaders: i.WaitingReaders,
	}, nil
}

// patience is how long a look-up or an action may take.
const patience = 10 * time.Second

func nameable(what, name string) error {
	switch {
	case name == "":
		return refuse(http.StatusBadRequest, "the %s is empty", what)
	case len(name) > longest:
		return refuse(http.StatusBadRequest, "the %s has %d bytes, more than %d", what, len(name), longest)
	}
	return nil
}
