package overrides

// SkippedRule is a rule that was skipped as a whole for the cluster, because its condition when is false or one of its
// tests failed.
type SkippedRule struct {
	Rule RuleRef
	// Path is the JSON pointer of the value that was tested. If the test is about a document in a string field, Path is
	// the path of this field, and Reason has the path in the document. If when is false, Path is empty.
	Path string
	// Reason describes why the rule was skipped.
	Reason string
}

// test compares the value in doc with the value in the operation. It returns nil if they are equal. Otherwise it
// returns a fault whose field unmet is set, so that the rule is skipped.
func (o *operation) test(doc map[string]any) *fault {
	path, _, f := o.path.item(doc)
	if f != nil && !f.unmet {
		return f
	}
	switch got, ok := path.lookup(doc); {
	case f != nil, !ok:
		return &fault{path: o.path.String(), message: "does not exist, and a test of the rule expects a value there", unmet: true}
	case !equal(got, o.value):
		return &fault{path: o.path.String(), message: "has another value than a test of the rule expects", unmet: true}
	}
	return nil
}
