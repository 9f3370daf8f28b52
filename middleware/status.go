package middleware

import (
	"time"

	"github.com/cacheguard/go/middleware/internal/writer"
)

// Why Limits refuse to store a response. While that is decided, one build answers all who wait, stored or not.
const (
	limited = "limit" // clients have made too many like it
	first   = "first" // nobody else has asked for it
)

// Result says how a request was answered.
type Result string

// The results. Where they mean the same, they have the words of cacheguard.Outcome.
const (
	Hit      Result = "hit"      // from the cache, fresh
	Stale    Result = "stale"    // from the cache, stale: it is being refreshed in the background, or cannot be at the moment
	Loaded   Result = "loaded"   // by the handler, or from the cache after the handler confirmed it
	Shared   Result = "shared"   // with the handler's response to another request, here or on another instance
	Bypassed Result = "bypassed" // by the handler, because Redis is unavailable or the cache bypassed; shared by requests to this instance
	Passed   Result = "passed"   // by the handler, for this request alone: no cache may answer it, or store the response
	Faulty   Result = "faulty"   // from the cache, with a stored response that has a status of 500 or more
	Refused  Result = "refused"  // by the handler, for this request alone, because Config.Limits forbid to store the response
	Failed   Result = "failed"   // not at all, or with an error of the cache itself; the handler panicked, or broke off while its client was there
)

// Response describes how a request was answered, for Config.OnResponse.
type Response struct {
	Result Result
	Status int           // 0: none was sent
	Route  string        // pattern of the route that made the response, if the router is chi or http.ServeMux; see metrics.Config.Routes
	Took   time.Duration // until the response was sent, or the client left

	// NotStored is why a response with the result passed or refused is not stored: the detail of its Cache-Status. Empty: the request
	// was none that a cache may answer, or for the handler alone. With the result bypassed: "bypass" if somebody has turned the cache off, else empty.
	NotStored string

	// NotInvalidated is why other instances may go on serving what the request has changed: the invalidation could not be sent. The Guard
	// sends it again.
	NotInvalidated error
}

// OtherReason stands for the reasons that Reasons does not have.
const OtherReason = "other"

// Reasons returns the values of Response.NotStored that are worth counting apart, and OtherReason: what Limits refuse has a Result of its own, and the others are rare.
func Reasons() []string {
	return []string{
		"no-store", "private", "authorization", "set-cookie", "vary", "status", "stale", "no-lifetime", writer.TooLarge, "flush", OtherReason,
	}
}

// passedFor is how a request was answered whose response is not stored for that reason.
func passedFor(detail string) Result {
	if detail == limited {
		return Refused
	}
	return Passed
}
