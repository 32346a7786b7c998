package overrides

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ErrTooLarge means that the rendered object has more than 4 MiB as JSON. A member may also refuse a smaller object.
var ErrTooLarge = errors.New("the rendered object is larger than 4 MiB, which no API server accepts: make it smaller or split it")

// PolicyRef names an OverridePolicy or a ClusterOverridePolicy.
type PolicyRef struct {
	Kind      string
	Namespace string // empty for a ClusterOverridePolicy
	Name      string
}

// RefOf returns the reference of a policy. It derives the kind from the policy's scope, because cached objects have no
// kind.
func RefOf(policy hubv1.OverridePolicyObject) PolicyRef {
	kind := "ClusterOverridePolicy"
	if policy.OverrideTier() == hubv1.TierNamespaced {
		kind = "OverridePolicy"
	}
	return PolicyRef{Kind: kind, Namespace: policy.GetNamespace(), Name: policy.GetName()}
}

// String returns the reference as text for messages: "OverridePolicy monitoring/metrics".
func (p PolicyRef) String() string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// RuleRef names a rule of a policy.
type RuleRef struct {
	Policy PolicyRef
	Rule   string
}

// String returns the reference as text for messages: `OverridePolicy monitoring/metrics, rule "shanghai"`.
func (r RuleRef) String() string {
	return fmt.Sprintf("%s, rule %q", r.Policy, r.Rule)
}

// InvalidError means that a policy, or the hub object itself, is invalid. It contains no value of the object.
type InvalidError struct {
	Policy  PolicyRef // zero if the hub object is invalid
	Rule    string    // empty if the error concerns the whole policy
	Path    string    // JSON pointer, empty if the error concerns no path
	Message string    // the error and its remedy
}

// Error returns a message with the policy or "the hub object", the path, the error and advice for the user.
func (e *InvalidError) Error() string {
	var b strings.Builder
	switch {
	case e.Policy == PolicyRef{}:
		b.WriteString("the hub object")
	case e.Rule == "":
		b.WriteString(e.Policy.String())
	default:
		b.WriteString(RuleRef{e.Policy, e.Rule}.String())
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString("path " + e.Path + " ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// ConflictError means that two policies of equal rank disagree about one path.
type ConflictError struct {
	Rules [2]RuleRef // from different policies, in the order of their names
	Path  string     // JSON pointer
	Rank  string
}

// Error names both rules, their rank and the path.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s, and %s, both of rank %s, disagree about path %s: give one of the rules a higher priority",
		e.Rules[0], e.Rules[1], e.Rank, e.Path)
}

// fault is an error in a rule. field, index and leaf are its position in the rule, which Validate reports. path is a
// JSON pointer into the object, which Render reports.
type fault struct {
	field   string // the field of the rule
	index   int    // the index in the field if it is a list, or -1
	leaf    string // the field in this list element
	path    string
	message string
	unmet   bool // true: a test failed, so the rule is skipped without an error
}

func (f *fault) of(rule RuleRef) *InvalidError {
	return &InvalidError{Policy: rule.Policy, Rule: rule.Rule, Path: f.path, Message: f.message}
}

// printable prepares a text from a policy or an object for a message. It replaces characters that cannot be printed,
// such as line breaks, and cuts the text to about 200 bytes.
func printable(s string) string {
	const limit = 200
	cut := len(s) > limit
	if cut {
		s = s[:limit]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	if cut {
		s += "..."
	}
	return s
}
