package wake

import (
	"strconv"
	"strings"
)

// Frame returns the payload of a published message: the length of the key, a colon, the key, the body. Scripts write it
// as (#key .. ':' .. key .. body). Key and body may hold any bytes. A probe is the frame of an empty key.
func Frame(key, body string) string {
	return strconv.Itoa(len(key)) + ":" + key + body
}

func parseFrame(payload string) (key, body string, ok bool) {
	size, rest, found := strings.Cut(payload, ":")
	if !found {
		return "", "", false
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}
