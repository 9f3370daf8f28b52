package main

import (
	"slices"
	"strings"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/off"
)

// inspect looks a key up.
type inspect struct {
	asked

	Key string `arg:"" help:"Key, as the service names it: without the prefix."`
}

// inspected is what Redis has for a key. Durations are in seconds.
type inspected struct {
	Prefix     string        `json:"prefix"`
	Key        string        `json:"key"`
	State      string        `json:"state"`
	Age        float64       `json:"age"`
	FreshFor   float64       `json:"fresh_for"`
	KeptFor    float64       `json:"kept_for"`
	LoadTook   float64       `json:"load_took"`
	Kind       string        `json:"kind"`
	Tags       []string      `json:"tags"`
	Versions   []string      `json:"tag_versions"` // in the order of the tags
	Size       int           `json:"size"`
	Damage     string        `json:"damage,omitempty"`
	Load       *shownHolder  `json:"load"` // null: nobody loads
	Waiting    int           `json:"waiting"`
	Writers    []shownHolder `json:"writers"`
	Blocked    int           `json:"blocked"`
	Intents    []shownHolder `json:"intents,omitempty"` // of transactions
	Failure    *shownFailure `json:"failure"`           // null: the last load did not fail
	Version    int           `json:"version,omitempty"`
	OfVersions []inspected   `json:"versions,omitempty"` // of a program: what each has, without writers, intents and blocked

	Bypassed float64 `json:"bypassed_for,omitempty"` // for how long all instances load without the cache; 0: they do not

	Notes []string `json:"notes,omitempty"` // why nothing may be there, and which pages did not answer

	text string
}

type shownHolder struct {
	Instance string  `json:"instance"`
	For      float64 `json:"for"`
	Left     float64 `json:"left"`
}

type shownFailure struct {
	Message string  `json:"message"`
	InARow  int     `json:"in_a_row"`
	Left    float64 `json:"left"`
}

// rows are what the library prints.
func (r inspected) rows() (rows [][]string) {
	for line := range strings.Lines("key " + r.text) {
		rows = append(rows, []string{strings.TrimSuffix(line, "\n")})
	}
	if r.Bypassed > 0 {
		rows = append(rows, []string{"  the cache is bypassed on all instances, for another " + seconds(r.Bypassed) + ": what is there is not served"})
	}
	return append(rows, noted(r.Notes)...)
}

// Run is called by kong.
func (c *inspect) Run(e *env) error {
	guard, err := e.guard()
	if err != nil {
		return err
	}
	defer guard.Close()
	i, err := guard.Inspect(e.ctx, c.Key)
	if err != nil {
		return err
	}
	shown := inspectedOf(e.all.Prefix, c.Key, i)
	var missing []string
	if isNothing(i) {
		missing = []string{c.Key}
	}
	shown.Notes = slices.Concat(e.notes, c.unknown(e, missing, nil, nil))
	left, err := e.rdb.PTTL(e.ctx, (&off.Switch{Config: off.Config{Prefix: e.all.Prefix}}).FleetKey()).Result()
	if err != nil {
		shown.Notes = append(shown.Notes, "whether the cache is bypassed is not known: "+err.Error())
	}
	shown.Bypassed = max(0, left.Seconds()) // below 0: it is not
	return e.out.print(shown)
}

// inspectedOf is what is known of a key; in OfVersions, of each version's entry.
func inspectedOf(prefix, key string, i cacheguard.Inspection) inspected {
	r := inspected{
		Prefix: prefix, Key: key, State: string(i.State), Age: i.Age.Seconds(), FreshFor: i.FreshFor.Seconds(),
		KeptFor: i.KeptFor.Seconds(), LoadTook: i.LoadTook.Seconds(), Kind: i.Kind, Tags: append([]string{}, i.Tags...), Versions: append([]string{}, i.TagVersions...),
		Size: i.Size, Damage: i.Damage, Waiting: i.Waiting, Writers: []shownHolder{}, Blocked: i.Blocked, Version: i.Version,
		text: i.String(),
	}
	if i.Load != nil {
		load := shown(*i.Load)
		r.Load = &load
	}
	for _, w := range i.Writers {
		r.Writers = append(r.Writers, shown(w))
	}
	for _, intent := range i.Intents {
		r.Intents = append(r.Intents, shown(intent))
	}
	if f := i.Failure; f != nil {
		r.Failure = &shownFailure{Message: f.Message, InARow: f.InARow, Left: f.Left.Seconds()}
	}
	for _, of := range i.Versions {
		r.OfVersions = append(r.OfVersions, inspectedOf(prefix, key, of))
	}
	return r
}

func shown(h cacheguard.Holder) shownHolder {
	return shownHolder{Instance: h.Instance, For: h.For.Seconds(), Left: h.Left.Seconds()}
}
