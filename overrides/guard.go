package overrides

// SkippedRule is a rule that applies in the cluster and was left out as a whole, because the object does not meet one
// of its tests.
type SkippedRule struct {
	Rule RuleRef
	// Path is the JSON pointer of the test. In a string field, the path in there follows that of the field.
	Path string
	// Reason says what was not met.
	Reason string
}

// test is a fault that is unmet if the value is not what the operation expects.
func (o *operation) test(doc map[string]any) *fault {
	switch got, ok := o.path.lookup(doc); {
	case !ok:
		return &fault{path: o.path.String(), message: "does not exist, and a test of the rule expects a value there", unmet: true}
	case !equal(got, o.value):
		return &fault{path: o.path.String(), message: "has another value than a test of the rule expects", unmet: true}
	}
	return nil
}
