package expression

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// operator is the type of an operator on a cluster. Its fields have types, so that a wrong field name is an error at
// compilation.
var operator = apiservercel.NewObjectType("hanse.Operator", map[string]*apiservercel.DeclField{
	versionField:   apiservercel.NewDeclField(versionField, apiservercel.StringType, true, nil, nil),
	installedField: apiservercel.NewDeclField(installedField, apiservercel.BoolType, true, nil, nil),
})

const (
	versionField   = "version"
	installedField = "installed"
)

// Operators is the type of the operators on a cluster, by name.
var Operators = cel.MapType(cel.StringType, operator.CelType())

// OperatorsOf returns a value of the type Operators.
func OperatorsOf(facts []hubv1.OperatorFact) map[string]any {
	out := make(map[string]any, len(facts))
	for _, f := range facts {
		out[f.Name] = map[string]any{versionField: f.Version, installedField: f.Installed}
	}
	return out
}
