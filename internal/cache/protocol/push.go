package protocol

// Push says how a lease, or an update, ended, in the message that a script sends to those who wait for its end.
type Push byte

// The words of messages.
const (
	PushedValue    Push = 'v' // a value was loaded and stored; it follows
	PushedKept     Push = 'k' // it is not stored
	PushedFailure  Push = 'f' // the load failed; the error's text follows
	PushedUnstored Push = 'p' // a value was loaded that cannot be stored: everyone has to load it
	PushedAskAgain Push = 'g' // it left nothing to hand over: ask Redis again
)

// ParsePush splits the body of a message. Not ok: it does not speak of this generation.
func ParsePush(body, generation string) (what Push, rest string, ok bool) {
	if len(body) <= len(generation) || body[1:1+len(generation)] != generation {
		return 0, "", false
	}
	return Push(body[0]), body[1+len(generation):], true
}
