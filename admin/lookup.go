package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/watch/observe"
)

// longest is how many bytes a key, a tag or the name of a lock may have to be looked up.
const longest = 8 << 10

// foundKey is what there is of a key. Durations are in seconds.
type foundKey struct {
	Key      string        `json:"key"`
	State    string        `json:"state"`
	Text     string        `json:"text"` // all of it, for people
	Age      float64       `json:"age"`
	FreshFor float64       `json:"fresh_for"`
	KeptFor  float64       `json:"kept_for"`
	Size     int           `json:"size"`
	Tags     []string      `json:"tags"`
	Load     *foundHolder  `json:"load"`
	Waiting  int           `json:"waiting"`
	Writers  int           `json:"writers"`
	Intents  []foundHolder `json:"intents"` // of whose transactions intents stand
	Failure  string        `json:"failure"`
	Version  int           `json:"version"`  // of a program, among Versions; 0: without one
	Versions []foundKey    `json:"versions"` // what each version of a program has, without writers and intents; Text has it, too
	Problem  string        `json:"problem"`  // why Redis was not asked with success; empty: it was
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
	found := found(key, &i)
	if err != nil {
		found.Problem, found.State, found.Text = err.Error(), "unknown", i.Here.String()
	}
	return found, nil
}

// found shows an Inspection, or one of its Versions.
func found(key string, i *cacheguard.Inspection) foundKey {
	f := foundKey{
		Key: key, State: string(i.State), Text: i.String(), Age: i.Age.Seconds(), FreshFor: i.FreshFor.Seconds(), KeptFor: i.KeptFor.Seconds(),
		Size: i.Size, Tags: append([]string{}, i.Tags...), Load: holder(i.Load), Waiting: i.Waiting, Writers: len(i.Writers),
		Intents: []foundHolder{}, Version: i.Version, Versions: []foundKey{},
	}
	if i.Failure != nil {
		f.Failure = i.Failure.Message
	}
	for _, intent := range i.Intents {
		f.Intents = append(f.Intents, *holder(&intent))
	}
	for n := range i.Versions {
		f.Versions = append(f.Versions, found(key, &i.Versions[n]))
	}
	return f
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
	Permits        int     `json:"permits"`  // of a semaphore, as this process wants them
	Servers        int     `json:"servers"`  // of a quorum
	Answered       int     `json:"answered"` // of them
	By             []byOne `json:"held_by"`  // of a semaphore, who has permits; of a quorum, whom servers name
}

// byOne is one of the holders.
type byOne struct {
	Instance string  `json:"instance"`
	Token    string  `json:"token"`
	Left     float64 `json:"left"`
	Servers  int     `json:"servers"` // of a quorum, that name it
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
	lock := foundLock{
		Name: name, Kind: l.Kind, Instance: i.Instance, Token: i.Token, Holders: i.Holders, Fence: i.Fence, Left: i.Left.Seconds(),
		Waiting: i.Waiting, WaitingReaders: i.WaitingReaders, Permits: l.Permits, Servers: l.Servers, Answered: i.Answered, By: []byOne{},
	}
	for _, h := range i.By[:min(mostLocks, len(i.By))] {
		lock.By = append(lock.By, byOne{h.Instance, h.Token, h.Left.Seconds(), h.Servers})
	}
	return lock, nil
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
