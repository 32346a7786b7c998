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

// exceeded returns the error message for the rule after which the budget is too small.
func (b *budget) exceeded() string {
	if b.operations < 0 {
		return fmt.Sprintf("does not fit: all rules together may make %d operations on an object: remove operations or rules", maxOperations)
	}
	return fmt.Sprintf("does not fit: all rules together may add %d KiB to an object: make the values smaller, or remove rules", maxAdded>>10)
}
