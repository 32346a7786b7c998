package overrides

import (
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Divided is a number that the division of replicas has computed for one cluster. It replaces the number in the hub
// object, and no rule may change it.
type Divided struct {
	Path   string // a JSON pointer without indexes of lists
	Number int64
}

// DividedError means that a rule changes a number that the division of replicas computes.
type DividedError struct {
	Rule RuleRef
	Path string // JSON pointer
}

// Error returns a message with the rule, the path and advice for the user.
func (e *DividedError) Error() string {
	return fmt.Sprintf("%s: path %s is divided between clusters by the placement: remove it from the rule, and use spec.replicas.divide of the placement", e.Rule, e.Path)
}

// setDivided writes the Number of each item of divided to the Path of this item in the manifest.
func setDivided(manifest map[string]any, divided []Divided) error {
	for _, d := range divided {
		path, message := parsePointer(d.Path)
		if message == "" {
			message = path.closedToWrites()
		}
		if message != "" {
			return &InvalidError{Path: printable(d.Path), Message: message}
		}
		at := manifest
		for _, step := range path.parent() {
			next, ok := at[step].(map[string]any)
			if !ok {
				if at[step] != nil {
					return &InvalidError{Path: path.String(), Message: "goes through a value that is not an object: correct spec.replicas.path of the placement"}
				}
				next = map[string]any{}
				at[step] = next
			}
			at = next
		}
		at[path.last()] = d.Number
	}
	return nil
}

// untouched returns an error if any of the rules changes a field that the division of replicas sets. The rank of the
// rule does not matter.
func untouched(rules []*rankedRule, divided []Divided) error {
	for _, d := range divided {
		path, _ := parsePointer(d.Path) // setDivided has parsed it
		for _, r := range rules {
			if r.change.touches(path) {
				return &DividedError{Rule: r.ref, Path: path.String()}
			}
		}
	}
	return nil
}

func (o *operation) touches(path pointer) bool {
	switch o.op {
	case hubv1.PatchTest:
		return false
	case hubv1.PatchMove:
		return o.path.over(path) || o.from.over(path)
	}
	return o.path.over(path)
}
