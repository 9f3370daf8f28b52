package rules

// heuristic are the status codes whose responses may be fresh without saying so (RFC 9110 section 15.1), except 206.
var heuristic = setOf(200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501)

// fixed statuses depend on the method and the URL alone, whoever asks (RFC 9110 sections 15.5.6, 15.5.15 and 15.6.2).
var fixed = setOf(405, 414, 501)

// methods has what a framework may take a GET for.
var methods = setOf("CONNECT", "COPY", "DELETE", "LINK", "LOCK", "MERGE", "MKCOL", "MOVE", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH",
	"PURGE", "PUT", "QUERY", "REPORT", "SEARCH", "TRACE", "UNLINK", "UNLOCK")

// safe are the methods that change nothing, as IANA's registry says.
var safe = setOf("GET", "HEAD", "OPTIONS", "TRACE", "PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH")

// IsSafe reports whether a method changes nothing.
func IsSafe(method string) bool { return safe[method] }

// understood are the status codes whose caching rules this cache follows: those of RFC 9110.
var understood = setOf(200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405,
	406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505)

// failures are the status codes to which stale-if-error applies (RFC 5861 section 4).
var failures = setOf(500, 502, 503, 504)

// IsFailure reports whether a stale response may stand in for a response with the status.
func IsFailure(status int) bool { return failures[status] }

func setOf[T comparable](members ...T) map[T]bool {
	set := make(map[T]bool, len(members))
	for _, m := range members {
		set[m] = true
	}
	return set
}
