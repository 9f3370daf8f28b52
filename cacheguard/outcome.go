package cacheguard

// Outcome says how a Get came by its answer.
type Outcome string

// The outcomes. A Get that ended without an answer (its context ended, the Guard was closed, the key is bad) has none.
const (
	Hit      Outcome = "hit"      // read from Redis, fresh
	Local    Outcome = "local"    // from the tier in this process, fresh
	Stale    Outcome = "stale"    // past its TTL but within StaleFor; or from the local tier, when Redis does not answer
	Negative Outcome = "negative" // absence, remembered
	Loaded   Outcome = "loaded"   // this call started the load, or loaded by itself after WaitTimeout
	Shared   Outcome = "shared"   // another call's load, here or on another instance
	Bypassed Outcome = "bypassed" // loaded without the cache: Redis is unavailable, the Guard disabled, an invalidation of the key is owed, or see Bypass
)
