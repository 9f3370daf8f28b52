package tier

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

// Notice says that a key was invalidated, or every entry with a tag, of a Cache, or of the Prefix (Many). As a message it is "SOURCE NUMBER
// KEY", with a + behind the number of one about many. Scripts publish it as it is, and do not read it. Processes of other versions read
// it, so the form must stay: a tier ignores what it cannot read, such as the messages of SelfCheck.
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

// many stands behind the number of a notice about many keys.
const many = "+"

func (n Notice) String() string {
	number := strconv.FormatUint(n.Number, 10)
	if n.Many {
		number += many
	}
	return n.Source + " " + number + " " + n.Key
}

// NameOf returns the name that a message is about, as a notice of many keys; else it is empty.
func NameOf(payload string) string {
	if n, ok := ParseNotice(payload); ok && n.Many {
		return n.Key
	}
	return ""
}

// ParseNotice is the inverse of String.
func ParseNotice(s string) (n Notice, ok bool) {
	var number string
	n.Source, s, _ = strings.Cut(s, " ")
	number, n.Key, ok = strings.Cut(s, " ")
	if !ok || len(n.Source) > maxSource {
		return n, false
	}
	n.Source = strings.Clone(n.Source) // it is kept, and the rest of the message is not
	number, n.Many = strings.CutSuffix(number, many)
	var err error
	n.Number, err = strconv.ParseUint(number, 10, 64)
	return n, err == nil && n.Number > 0
}

// Notices makes the notices of one process. It numbers those of each part of the keyspace for themselves, as messages of
// different nodes may overtake each other. It is safe for concurrent use.
type Notices struct {
	Channel string // on which they are published

	id      string
	numbers []atomic.Uint64
}

// NewNotices begins the numbers of a process, under an id that no other process has.
func NewNotices(channel string, parts int) *Notices {
	return &Notices{Channel: channel, id: rand.Text(), numbers: make([]atomic.Uint64, parts)}
}

// Next is the next notice: that the key, of that part, was invalidated.
func (n *Notices) Next(part int, key string) string {
	return Notice{
		Source: n.id + "/" + strconv.Itoa(part), Number: n.numbers[part].Add(1), Key: key,
	}.String()
}

// NextOfMany is the next notice of that part, about all that was made under a name.
func (n *Notices) NextOfMany(part int, name string) string {
	return Notice{
		Source: n.id + "/" + strconv.Itoa(part), Number: n.numbers[part].Add(1), Key: name, Many: true,
	}.String()
}

// Own reports whether a notice comes from this process.
func (n *Notices) Own(source string) bool { return strings.HasPrefix(source, n.id) }
