// Package source decides whether a later state of this hub has written a copy on a member. This is possible if the etcd
// of the hub was restored from an older backup.
//
// Each copy has a Mark: the generation of its hub object, and the Epoch in which the hub has written the copy. The hub
// keeps the list of its epochs in its own etcd, and adds an epoch to the list before it uses it. A restored hub
// therefore does not know the epochs after the backup. It continues to count from the backup. Its new epochs have the
// same sequence numbers as the lost ones, but another random part.
//
// The package does no I/O. Marks come from members and may be invalid. An unreadable mark is treated like a missing
// one.
package source

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// Epoch is a period of time in which one state of the hub has written to members.
type Epoch struct {
	// Sequence is one more than the sequence of the previous epoch.
	Sequence int64
	// Random distinguishes epochs to which two states of the hub gave the same sequence.
	Random string
}

// longestRandom and longestMark are the maximum lengths, in bytes, of a random part and of a mark.
const (
	longestRandom = 16
	longestMark   = 64
)

// String returns the epoch as text, such as 1764028800-3f9c01ab.
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

// positive parses a number. It accepts only the text that String would return for that number.
func positive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// Mark names the state of the hub that wrote a copy. The zero value stands for a copy without a mark.
type Mark struct {
	// Generation is the generation of the hub object. It is 0 for kinds without a generation.
	Generation int64
	Epoch      Epoch
}

// String returns the value of the annotation, such as 7;1764028800-3f9c01ab. It is empty for the zero value.
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

// Epochs are the epochs that the hub knows, oldest first, with consecutive sequences. The zero value is an empty list.
// Epochs is immutable.
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

// First returns the oldest epoch. It returns false for an empty list.
func (l Epochs) First() (Epoch, bool) {
	if len(l.all) == 0 {
		return Epoch{}, false
	}
	return l.all[0], true
}

// Last returns the newest epoch. It returns false for an empty list.
func (l Epochs) Last() (Epoch, bool) {
	if len(l.all) == 0 {
		return Epoch{}, false
	}
	return l.all[len(l.all)-1], true
}

// Append returns the list with one more epoch. If it is then longer than most, the oldest epochs are dropped. start is
// the sequence of the first epoch in an empty list, see Restart.
func (l Epochs) Append(random string, start int64, most int) Epochs {
	next := Epoch{Sequence: start, Random: random}
	if last, ok := l.Last(); ok {
		next.Sequence = last.Sequence + 1
	}
	all := append(l.all[:len(l.all):len(l.all)], next)
	return Epochs{all[max(0, len(all)-most):]}
}

// Restart returns a list with one epoch that comes after all known epochs. Every earlier mark is then old, and its copy
// may be overwritten. start is the current time in seconds since 1970. Epochs begin far less often than once a second,
// so that no state of the hub has used this number before.
func (l Epochs) Restart(random string, start int64) Epochs {
	if last, ok := l.Last(); ok {
		start = max(start, last.Sequence+1)
	}
	return Epochs{[]Epoch{{Sequence: start, Random: random}}}
}

// Foreign reports whether the epoch belongs to another state of the hub. The list must not contain the epoch, although
// it contains all epochs of this hub since that sequence.
func (l Epochs) Foreign(e Epoch) bool {
	first, ok := l.First()
	if !ok || e.Sequence < first.Sequence {
		return false
	}
	place := e.Sequence - first.Sequence
	return place >= int64(len(l.all)) || l.all[place].Random != e.Random
}

// isOld reports whether the epoch was dropped from the list or was accepted by a user. Marks with an old epoch do not
// protect a copy.
func (l Epochs) isOld(e Epoch) bool {
	first, ok := l.First()
	return ok && e.Sequence < first.Sequence
}

// State is the state of the hub with which one copy is compared. With the zero value, no copy is newer, and the hub
// writes no mark.
type State struct {
	// Mark is the mark that the hub writes to the copy.
	Mark   Mark
	Epochs Epochs
	// Accepted lists the marks of copies that the hub may overwrite although they are newer, separated by commas. It is
	// the value of an annotation of the hub object.
	Accepted string
}

// Newer reports whether a later state of the hub wrote the copy with this mark. sameObject is true if the copy was
// written for the same hub object, by UID. Only then can the generations be compared.
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
