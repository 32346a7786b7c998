package overrides

import "fmt"

// budget is the number of bytes and operations that override rules may still use for one object in one cluster.
type budget struct {
	added      int // bytes of values and copies
	operations int
	text       int // bytes of string fields that are edited
	marks      int // special characters in these fields, see marksOf
	kept       int // bytes of copies that are kept to restore the object if a test fails
}

func newBudget() *budget {
	return &budget{added: maxAdded, operations: maxOperations, text: maxText, marks: maxMarks, kept: maxKept}
}

// spend subtracts the bytes and the operations of a rule from the budget. It returns false if the budget is too small.
func (b *budget) spend(bytes, operations int) bool {
	b.added -= bytes
	b.operations -= operations
	return b.added >= 0 && b.operations >= 0
}

func exceeded() string {
	return fmt.Sprintf("all rules for one object in one cluster together may have %d KiB and %d operations, and this rule exceeds that: make the rules smaller",
		maxAdded>>10, maxOperations)
}
