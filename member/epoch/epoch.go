// Package epoch decides whether a copy is newer than the hub: a later state of the hub wrote the copy. This is
// possible if the etcd of the hub was restored from an older backup.
//
// Each copy has a Mark. The mark consists of the generation of the hub object, of the Epoch in which the hub wrote the
// copy, and of the Decision that the write carried out. The hub stores the list of its epochs in its own etcd, and adds
// an epoch to the list before it uses the epoch. A hub that was restored from a backup therefore does not know the
// epochs after the backup. It adds new epochs after the last one in the backup. The new epochs have the same sequence
// numbers as the lost ones, but another random part.
//
// The package does no I/O. Marks come from members and may be invalid. An invalid mark is treated like a missing mark.
package epoch

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// Epoch is the period from one entry in the hub's list of epochs to the next entry. The hub adds an entry before its
// first write after a start, and about every ten minutes while it writes to members. An epoch is called foreign if only
// a later state of the hub, before a restore, knows it.
type Epoch struct {
	// Sequence is one more than the sequence of the previous epoch.
	Sequence int64
	// Random distinguishes two epochs with the same sequence. Without it, a new epoch of a restored hub could be confused
	// with a lost epoch.
	Random string
}

// maxRandomBytes is the maximum length of the random part of an epoch, and maxMarkBytes that of a mark, both in bytes.
const (
	maxRandomBytes = 16
	maxMarkBytes   = 64
)

// String returns the epoch as text: sequence and random part, such as 1764028800-3f9c01ab.
func (e Epoch) String() string { return strconv.FormatInt(e.Sequence, 10) + "-" + e.Random }

// NewRandom makes the random part of an epoch.
func NewRandom() string {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // rand.Read never returns an error
	return hex.EncodeToString(raw[:])
}

// ParseEpoch reads an epoch from text in the form of String. It returns false if the text is invalid.
func ParseEpoch(text string) (Epoch, bool) {
	number, random, ok := strings.Cut(text, "-")
	sequence, read := positive(number)
	if !ok || !read || random == "" || len(random) > maxRandomBytes {
		return Epoch{}, false
	}
	for _, c := range []byte(random) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return Epoch{}, false
		}
	}
	return Epoch{Sequence: sequence, Random: random}, true
}

// positive parses a number that is not negative. It returns false for any text that differs from the usual decimal
// form, such as 007.
func positive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// Decision names one state of the binding of a hub object. Each change of the binding's spec makes another decision: a
// wave of a rollout, a share of replicas, or another set of clusters. The zero value means that no decision is known.
type Decision struct {
	// Binding is the UID of the binding. A binding that was deleted and created again has another UID, and its generations
	// start at 1.
	Binding string
	// Generation is the generation of the binding.
	Generation int64
}

// maxBindingBytes is the maximum length of the UID of a binding, in bytes.
const maxBindingBytes = 36

// String returns the value of DecisionAnnotation, such as 0c5a7f9e-6f0e-4a52-9a3b-2f1a5c1f6d11;12. It returns "" for
// the zero value.
func (d Decision) String() string {
	if d == (Decision{}) {
		return ""
	}
	return d.Binding + ";" + strconv.FormatInt(d.Generation, 10)
}

// ParseDecision parses a value of DecisionAnnotation. It returns the zero value if the text is empty or invalid.
func ParseDecision(text string) Decision {
	binding, number, ok := strings.Cut(text, ";")
	generation, read := positive(number)
	if !ok || !read || binding == "" || len(binding) > maxBindingBytes {
		return Decision{}
	}
	return Decision{Binding: binding, Generation: generation}
}

// Before reports whether the decision is earlier than another one on the same binding.
func (d Decision) Before(other Decision) bool {
	return d.Binding != "" && d.Binding == other.Binding && d.Generation < other.Generation
}

// Mark names the state of the hub that wrote a copy: the generation of the hub object, the epoch and the decision. The
// zero value means that the copy has no mark.
type Mark struct {
	// Generation is the generation of the hub object. It is 0 for kinds without a generation.
	Generation int64
	Epoch      Epoch
	// Decision is the decision that the write carried out. It is in an annotation of its own, so that earlier versions of
	// the hub can read the rest. It is the zero value in a copy that such a version has written.
	Decision Decision
}

// String returns the value of SourceAnnotation for this mark, such as 7;1764028800-3f9c01ab. It does not include the
// decision. It returns "" for the zero value.
func (m Mark) String() string {
	if m == (Mark{}) {
		return ""
	}
	return strconv.FormatInt(m.Generation, 10) + ";" + m.Epoch.String()
}

// ParseMark parses a value of SourceAnnotation. It returns the zero value if the text is empty or invalid.
func ParseMark(text string) Mark {
	if len(text) > maxMarkBytes {
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

// ReadMark reads the mark of a copy from the values of SourceAnnotation and DecisionAnnotation. Without a valid
// SourceAnnotation, the copy has no mark.
func ReadMark(source, decision string) Mark {
	m := ParseMark(source)
	if m != (Mark{}) {
		m.Decision = ParseDecision(decision)
	}
	return m
}

// Epochs is the list of the epochs that the hub knows, oldest first. Each epoch's sequence is one more than that of the
// epoch before it. The zero value is an empty list. The methods of Epochs never change the list.
type Epochs struct{ all []Epoch }

// ParseEpochs parses a list with one epoch on each line. It returns false if a line is invalid, or if a sequence is not
// one more than the sequence before it.
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

// String returns the list with one epoch on each line.
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

// Append returns the list with one more epoch at its end. If the list would have more than `limit` epochs, the oldest
// ones are dropped. If the list is empty, start is the sequence of the new epoch, see Restart.
func (l Epochs) Append(random string, start int64, limit int) Epochs {
	next := Epoch{Sequence: start, Random: random}
	if last, ok := l.Last(); ok {
		next.Sequence = last.Sequence + 1
	}
	all := append(l.all[:len(l.all):len(l.all)], next)
	return Epochs{all[max(0, len(all)-limit):]}
}

// Restart returns a list that has only one epoch. The sequence of this epoch is higher than that of all known epochs.
// All earlier epochs are then older than the list, so that the hub may overwrite copies that have marks of these
// epochs. start is the current time in seconds since 1970. A hub adds far less than one epoch a second, so that no
// state of the hub has used this sequence before.
func (l Epochs) Restart(random string, start int64) Epochs {
	if last, ok := l.Last(); ok {
		start = max(start, last.Sequence+1)
	}
	return Epochs{[]Epoch{{Sequence: start, Random: random}}}
}

// Foreign reports whether a later state of the hub, before a restore, has used the epoch. This is so if the epoch is
// not in the list, although its sequence is not lower than that of the list's first epoch.
func (l Epochs) Foreign(e Epoch) bool {
	first, ok := l.First()
	if !ok || e.Sequence < first.Sequence {
		return false
	}
	place := e.Sequence - first.Sequence
	return place >= int64(len(l.all)) || l.all[place].Random != e.Random
}

// isOld reports whether the epoch comes before the oldest epoch of the list. A copy whose mark has an old epoch may be
// overwritten.
func (l Epochs) isOld(e Epoch) bool {
	first, ok := l.First()
	return ok && e.Sequence < first.Sequence
}

// State is the present state of the hub, with which the mark of one copy is compared. With the zero value, no copy
// counts as newer, and the hub writes no mark.
type State struct {
	// Mark is the mark that the hub writes to the copy.
	Mark   Mark
	Epochs Epochs
	// Accepted lists marks, separated by commas. The hub may overwrite a copy that has one of these marks, although the
	// copy is newer. Accepted is the value of AcceptSourceAnnotation of the hub object.
	Accepted string
	// Held is true if the hub has already found that the copy is newer, and the copy was not written since. Further edits
	// and decisions of the restored hub do not change this, although they raise the generations in Mark.
	Held bool
}

// Newer reports whether a later state of the hub wrote the copy. copied is the mark of the copy. sameObject is true if
// the copy was written for the hub object with the present UID. If it is false, Newer does not compare the generations
// of the hub object, because they belong to different objects. Decisions are compared only if they belong to one
// binding.
func (s State) Newer(copied Mark, sameObject bool) bool {
	if copied == (Mark{}) || s.Epochs.isOld(copied.Epoch) || s.accepts(copied) {
		return false
	}
	return s.Held || s.Epochs.Foreign(copied.Epoch) || sameObject && copied.Generation > s.Mark.Generation ||
		s.Mark.Decision.Before(copied.Decision)
}

func (s State) accepts(copied Mark) bool {
	for accepted := range strings.SplitSeq(s.Accepted, ",") {
		if m := ParseMark(strings.TrimSpace(accepted)); m.Generation == copied.Generation && m.Epoch == copied.Epoch {
			return true
		}
	}
	return false
}
