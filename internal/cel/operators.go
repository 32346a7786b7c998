package cel

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// operator is the CEL type of an operator on a cluster. Because the type declares its fields, a wrong field name in an
// expression is an error at compilation.
var operator = apiservercel.NewObjectType("hanse.Operator", map[string]*apiservercel.DeclField{
	versionField:   apiservercel.NewDeclField(versionField, apiservercel.StringType, true, nil, nil),
	installedField: apiservercel.NewDeclField(installedField, apiservercel.BoolType, true, nil, nil),
})

const (
	versionField   = "version"
	installedField = "installed"
)

// Operators is the CEL type of the variable operators: a map from the name of an operator on a cluster to its
// description.
var Operators = cel.MapType(cel.StringType, operator.CelType())

// OperatorsOf returns a value of the variable operators, from the operators in the status of a MemberCluster.
func OperatorsOf(facts []hubv1.OperatorFact) map[string]any {
	out := make(map[string]any, len(facts))
	for _, f := range facts {
		out[f.Name] = map[string]any{versionField: f.Version, installedField: f.Installed}
	}
	return out
}
