package rivals

import chistampede "github.com/go-chi/stampede"

// stampede is go-chi/stampede 0.6.0 with the settings of its README, and room for all pages. Its cache is the instance's own. It
// offers nothing to a writer.
var stampede = CacheLibrary{
	Name: "go-chi/stampede 0.6.0", Kind: Local, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		return &site{handler: routed(s.origin, chistampede.Handler(max(2*s.Entries, 512), s.TTL))}, nil
	},
}
