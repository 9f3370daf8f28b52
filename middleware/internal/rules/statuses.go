package rules

// heuristic are the status codes whose responses may be fresh without saying so (RFC 9110 section 15.1), except 206.
var heuristic = statuses(200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501)

// understood are the status codes whose caching rules this cache follows: those of RFC 9110.
var understood = statuses(200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405,
	406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505)

// failures are the status codes to which stale-if-error applies (RFC 5861 section 4).
var failures = statuses(500, 502, 503, 504)

// IsFailure reports whether a stale response may stand in for a response with the status.
func IsFailure(status int) bool { return failures[status] }

func statuses(codes ...int) map[int]bool {
	set := make(map[int]bool, len(codes))
	for _, code := range codes {
		set[code] = true
	}
	return set
}
