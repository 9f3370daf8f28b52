package main

import (
	"time"
)

// bypass turns the cache off for a while.
type bypass struct {
	sure
	asked

	For time.Duration `arg:"" help:"How long, at most 24h; 0 turns the cache on again."`
}

// bypassed is what was said to all instances.
type bypassed struct {
	Prefix  string  `json:"prefix"`
	Seconds float64 `json:"seconds"` // 0: the bypass is over

	Notes []string `json:"notes,omitempty"` // that no page knows the prefix
}

func (r bypassed) rows() [][]string {
	if r.Seconds == 0 {
		return append([][]string{{"the cache is on", r.Prefix}}, noted(r.Notes)...)
	}
	return append([][]string{{"bypassed", r.Prefix, "for " + time.Duration(r.Seconds*float64(time.Second)).String()}}, noted(r.Notes)...)
}

// Run is called by kong.
func (c *bypass) Run(e *env) error {
	if c.For != 0 {
		if err := c.confirm(e, "Have every instance of %q load without the cache for %v?", e.all.Prefix, c.For); err != nil {
			return err
		}
	}
	guard, err := e.guard()
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := guard.BypassFleet(e.ctx, c.For); err != nil {
		return err
	}
	return e.out.print(bypassed{Prefix: e.all.Prefix, Seconds: c.For.Seconds(), Notes: c.unknown(e, nil, nil, nil)})
}
