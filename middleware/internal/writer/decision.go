package writer

// Why a Recorder releases a response of its own accord.
const (
	TooLarge   = "too-large"  // the body is larger than the Recorder's limit
	Incomplete = "incomplete" // the handler failed when it had begun the response, or wrote less than it announced
	flushed    = "flush"      // the handler flushed a response that did not say that it may be stored
)

// Decision says what happens to a response, once its header is known.
type Decision struct {
	Unfit    string // why the response cannot be stored; empty: it is held back
	Explicit bool   // the response itself says that it may be stored
	Discard  bool   // nobody needs the body
	Size     int    // of the body, if it is known
}
