package overrides

import "fmt"

// budget is what the rules for one object in one cluster may still spend.
type budget struct {
	added      int // bytes of values and copies
	operations int
	text       int // bytes of string fields that are edited
	marks      int // in these, see marksOf
	kept       int // bytes of objects that are kept to go back to if a test is not met
}

func newBudget() *budget {
	return &budget{added: maxAdded, operations: maxOperations, text: maxText, marks: maxMarks, kept: maxKept}
}

// spend takes off what a rule adds and how many operations that takes. It is false if there is not so much left.
func (b *budget) spend(bytes, operations int) bool {
	b.added -= bytes
	b.operations -= operations
	return b.added >= 0 && b.operations >= 0
}

func exceeded() string {
	return fmt.Sprintf("all rules for one object in one cluster together may have %d KiB and %d operations, and this rule exceeds that: make the rules smaller",
		maxAdded>>10, maxOperations)
}
