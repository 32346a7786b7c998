// Package source decides whether a copy on a member was written by a later state of this hub than the hub now has. That
// happens if the hub's etcd was restored from an older backup.
//
// Each copy has a Mark: the generation of its hub object and the Epoch in which it was written. The hub keeps the list
// of its epochs in its own etcd and appends an epoch before it uses it. So a restored hub does not know the epochs
// after the backup. It continues to number its epochs from the backup, and a random part distinguishes them from the
// unknown ones.
//
// The package does no I/O. Marks come from members and may be invalid: an unreadable mark counts as missing.
package source

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// Epoch is a span of time in which one state of the hub wrote to members.
type Epoch struct {
	// Sequence is one more than the sequence of the previous epoch.
	Sequence int64
	// Random distinguishes epochs to which two states of the hub gave the same sequence.
	Random string
}

// longest are the maximum lengths of a random part and of a mark.
const (
	longestRandom = 16
	longestMark   = 64
)

// String returns a text such as 1764028800-3f9c01ab.
func (e Epoch) String() string { return strconv.FormatInt(e.Sequence, 10) + "-" + e.Random }

// NewRandom makes the random part of an epoch.
func NewRandom() string {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // it never returns an error
	return hex.EncodeToString(raw[:])
}

// ParseEpoch reads the text of an Epoch.
func ParseEpoch(text string) (Epoch, bool) {
	number, random, ok := strings.Cut(text, "-")
	sequence, read := positive(number)
	if !ok || !read || random == "" || len(random) > longestRandom {
		return Epoch{}, false
	}
	for _, c := range []byte(random) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return Epoch{}, false
		}
	}
	return Epoch{Sequence: sequence, Random: random}, true
}

// positive parses a number in the form of String, so that equal values have one text.
func positive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// Mark tells from which state of the hub a copy was written. The zero value is for a copy without a mark.
type Mark struct {
	// Generation of the hub object; 0 for kinds without a generation.
	Generation int64
	Epoch      Epoch
}

// String returns the value of the annotation, such as 7;1764028800-3f9c01ab; empty for the zero value.
func (m Mark) String() string {
	if m == (Mark{}) {
		return ""
	}
	return strconv.FormatInt(m.Generation, 10) + ";" + m.Epoch.String()
}

// ParseMark parses the value of the annotation. It returns the zero value if the annotation is missing or invalid.
func ParseMark(text string) Mark {
	if len(text) > longestMark {
		return Mark{}
	}
	number, rest, ok := strings.Cut(text, ";")
	generation, read := positive(number)
	epoch, known := ParseEpoch(rest)
	if !ok || !read || !known {
		return Mark{}
	}
	return Mark{Generation: generation, Epoch: epoch}
}

// Epochs are the epochs that the hub knows, oldest first, with consecutive sequences. The zero value has none. It is
// immutable.
type Epochs struct{ all []Epoch }

// ParseEpochs parses one epoch per line. It returns false if a line is invalid or the sequences are not consecutive.
func ParseEpochs(text string) (Epochs, bool) {
	var out Epochs
	for _, line := range strings.Fields(text) {
		e, ok := ParseEpoch(line)
		if last, some := out.Last(); !ok || some && e.Sequence != last.Sequence+1 {
			return Epochs{}, false
		}
		out.all = append(out.all, e)
	}
	return out, true
}

// String returns one epoch per line.
func (l Epochs) String() string {
	var out strings.Builder
	for _, e := range l.all {
		out.WriteString(e.String())
		out.WriteByte('\n')
	}
	return out.String()
}

// Len returns the number of epochs.
func (l Epochs) Len() int { return len(l.all) }

// First returns the oldest epoch. It returns false if there is none.
func (l Epochs) First() (Epoch, bool) {
	if len(l.all) == 0 {
		return Epoch{}, false
	}
	return l.all[0], true
}

// Last returns the newest epoch. It returns false if there is none.
func (l Epochs) Last() (Epoch, bool) {
	if len(l.all) == 0 {
		return Epoch{}, false
	}
	return l.all[len(l.all)-1], true
}

// Append returns the epochs with one more, and drops the oldest ones beyond most. The first
// sequence of an empty list is start. See Restart for the choice of it.
func (l Epochs) Append(random string, start int64, most int) Epochs {
	next := Epoch{Sequence: start, Random: random}
	if last, ok := l.Last(); ok {
		next.Sequence = last.Sequence + 1
	}
	all := append(l.all[:len(l.all):len(l.all)], next)
	return Epochs{all[max(0, len(all)-most):]}
}

// Restart returns a list of one epoch that comes after all known ones. Every earlier mark is then old, and its copy may
// be overwritten. start is the present time in seconds since 1970. Because epochs begin far less often than every
// second, no state of the hub has used that number before.
func (l Epochs) Restart(random string, start int64) Epochs {
	if last, ok := l.Last(); ok {
		start = max(start, last.Sequence+1)
	}
	return Epochs{[]Epoch{{Sequence: start, Random: random}}}
}

// Foreign reports whether the epoch belongs to another state of the hub. Then this list lacks the epoch, although it
// would have any earlier epoch of this hub.
func (l Epochs) Foreign(e Epoch) bool {
	first, ok := l.First()
	if !ok || e.Sequence < first.Sequence {
		return false
	}
	place := e.Sequence - first.Sequence
	return place >= int64(len(l.all)) || l.all[place].Random != e.Random
}

// isOld reports whether the epoch was dropped from the list, or was accepted: its marks no longer matter.
func (l Epochs) isOld(e Epoch) bool {
	first, ok := l.First()
	return ok && e.Sequence < first.Sequence
}

// State is the state of the hub for judging one copy. With the zero value no copy is newer, and copies get no mark.
type State struct {
	// Mark is written to the copy.
	Mark   Mark
	Epochs Epochs
	// Accepted are the marks of copies that may be overwritten anyway, separated by commas: the value of an annotation
	// of the hub object.
	Accepted string
}

// Newer reports whether a later state of the hub wrote the copy with this mark. sameObject is true if the copy was
// written for the same hub object, by UID: only then generations can be compared.
func (s State) Newer(copied Mark, sameObject bool) bool {
	if copied == (Mark{}) || s.Epochs.isOld(copied.Epoch) || s.accepts(copied) {
		return false
	}
	return s.Epochs.Foreign(copied.Epoch) || sameObject && copied.Generation > s.Mark.Generation
}

func (s State) accepts(copied Mark) bool {
	for accepted := range strings.SplitSeq(s.Accepted, ",") {
		if ParseMark(strings.TrimSpace(accepted)) == copied {
			return true
		}
	}
	return false
}
