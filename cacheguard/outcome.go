package cacheguard

// Outcome says how a Get came by its answer.
type Outcome string

// The outcomes. A Get that ended without an answer (its context ended, the Guard was closed, the key is bad) has none.
const (
	Hit      Outcome = "hit"      // read from Redis, fresh
	Local    Outcome = "local"    // read from a tier in this process; not in use yet
	Stale    Outcome = "stale"    // read from Redis, past its TTL but within StaleFor
	Negative Outcome = "negative" // absence, remembered
	Loaded   Outcome = "loaded"   // this call started the load
	Shared   Outcome = "shared"   // another call's load, here or on another instance
	Bypassed Outcome = "bypassed" // loaded without the cache, because Redis is unavailable
)
