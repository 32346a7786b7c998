package overrides

// SkippedRule is a rule that was skipped as a whole for the cluster, because one of its tests failed.
type SkippedRule struct {
	Rule RuleRef
	// Path is the JSON pointer of the test. For a string field, the path inside the document follows the field's path.
	Path string
	// Reason describes the failed test.
	Reason string
}

// test returns an unmet fault if the value in doc differs from the value in the operation.
func (o *operation) test(doc map[string]any) *fault {
	switch got, ok := o.path.lookup(doc); {
	case !ok:
		return &fault{path: o.path.String(), message: "does not exist, and a test of the rule expects a value there", unmet: true}
	case !equal(got, o.value):
		return &fault{path: o.path.String(), message: "has another value than a test of the rule expects", unmet: true}
	}
	return nil
}
