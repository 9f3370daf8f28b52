package tier

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
)

// Notice says that a key was invalidated, or every entry with a tag, of a Cache, or of the Prefix (Many). As a message
// it is "SOURCE NUMBER KEY", with a + behind the number of one about many. Scripts publish it as it is, and do not read
// it. Processes of other versions read it, so the form must stay: a tier ignores what it cannot read, such as the
// messages of SelfCheck.
type Notice struct {
	Source string // the process, or a part of the keys of one; without spaces
	Number uint64 // of the notice, by its source: 1, 2, 3 …
	Key    string
	Many   bool // Key is such a name, see Tier.ForgetMany
}

// All is the name that everything is made under.
const All = "*"

// maxSource is how many bytes a source has at most.
const maxSource = 128

// maxNumber is the largest number of a notice: what follows it must be a number too.
const maxNumber = 1 << 62

// many stands behind the number of a notice about many keys.
const many = "+"

func (n Notice) String() string {
	mark := ""
	if n.Many {
		mark = many
	}
	return write(n.Source, n.Number, mark, n.Key)
}

// ParseNotice is the inverse of String.
func ParseNotice(s string) (n Notice, ok bool) {
	var mark string
	n.Source, n.Number, mark, n.Key, ok = read(s)
	n.Many = mark == many
	return n, ok && (n.Many || mark == "")
}

// write makes a message, and read is its inverse. The mark says what the rest is.
func write(source string, number uint64, mark, rest string) string {
	return source + " " + strconv.FormatUint(number, 10) + mark + " " + rest
}

func read(s string) (source string, number uint64, mark, rest string, ok bool) {
	source, s, _ = strings.Cut(s, " ")
	s, rest, ok = strings.Cut(s, " ")
	digits := strings.TrimRight(s, many+repeated)
	number, err := strconv.ParseUint(digits, 10, 64)
	ok = ok && err == nil && len(source) <= maxSource && number > 0 && number <= maxNumber
	return strings.Clone(source), number, s[len(digits):], rest, ok // the source is kept, and the rest of the message is not
}

// Notices makes the notices of one process. It numbers those of each part of the keyspace for themselves, as messages
// of different nodes may overtake each other. It is safe for concurrent use.
type Notices struct {
	Channel string // on which they are published
	Begin   func() // runs Repeat in the background, when there is something to repeat; nil: nobody does

	Changed func(refused string) // the channel on which notices begin to be refused; empty: they are no more

	id string

	mu      sync.Mutex
	parts   []numbers
	gathers bool // Repeat was begun, and gathers

	repeating int // how many were begun, and have not ended
}

// numbers are the numbers of a part: the last one, the last one that Repeat has gathered, and the first one that was
// refused; 0: none is.
type numbers struct{ last, gathered, refused uint64 }

// NewNotices begins the numbers of a process, under an id that no other process has.
func NewNotices(channel string, parts int) *Notices {
	return &Notices{Channel: channel, id: rand.Text(), parts: make([]numbers, parts)}
}

// Next is the next notice: that the key, of that part, was invalidated.
func (n *Notices) Next(part int, key string) string {
	return Notice{Source: n.source(part), Number: n.number(part), Key: key}.String()
}

// NextOfMany is the next notice of that part, about all that was made under a name.
func (n *Notices) NextOfMany(part int, name string) string {
	return Notice{Source: n.source(part), Number: n.number(part), Key: name, Many: true}.String()
}

func (n *Notices) source(part int) string { return n.id + "/" + strconv.Itoa(part) }

func (n *Notices) number(part int) uint64 {
	n.mu.Lock()
	n.parts[part].last++
	last, begin := n.parts[part].last, !n.gathers && n.Begin != nil
	if begin {
		n.gathers = true
		n.repeating++
	}
	n.mu.Unlock()
	if begin {
		n.Begin()
	}
	return last
}

// Own reports whether a notice comes from this process.
func (n *Notices) Own(source string) bool { return strings.HasPrefix(source, n.id) }
