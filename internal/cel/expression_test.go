package cel

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const limit = 20_000

func environmentOfTest() *Environment {
	return NewEnvironment(limit, map[string]*cel.Type{
		"object": cel.DynType, "values": cel.ListType(cel.DynType), "labels": cel.MapType(cel.StringType, cel.StringType), "cluster.name": cel.StringType,
		"capacity": cel.MapType(cel.StringType, apiservercel.QuantityType), "operators": Operators,
	})
}

func valuesOfTest() map[string]any {
	cpu := resource.MustParse("1500m")
	return map[string]any{
		"object": map[string]any{
			"three": int64(3), "half": 0.5, "text": "abc", "nothing": nil, "items": []any{"x", "y"}, "map": map[string]any{"z": "1", "b": "2", "m": "3"},
			"secret": "hunter2",
		},
		"values":       []any{map[string]any{"cluster": "eu", "value": int64(1)}, map[string]any{"cluster": "cn", "value": int64(2)}},
		"labels":       map[string]string{"z": "1", "team": "sre", "a": "2"},
		"cluster.name": "eu",
		"capacity":     map[string]any{"cpu": apiservercel.Quantity{Quantity: &cpu}},
		"operators":    OperatorsOf([]hubv1.OperatorFact{{Name: "rotors", Version: "1.2.0", Installed: true}, {Name: "certs", Version: "1.19.1"}}),
	}
}

func TestValue(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"an int stays one":                               {"object.three * 2", int64(6)},
		"a float stays one":                              {"object.half + 0.25", 0.75},
		"a text is one":                                  {"cluster.name + '-' + object.text", "eu-abc"},
		"null is one":                                    {"object.nothing", nil},
		"a quantity is a text":                           {"capacity['cpu'].add(quantity('1500m'))", "3"},
		"a list of maps is one":                          {"object.items.map(i, {'name': i, 'in': cluster.name})", []any{map[string]any{"name": "x", "in": "eu"}, map[string]any{"name": "y", "in": "eu"}}},
		"a map may hold several types":                   {"{'a': 1, 'b': 'x', ?'c': object.?three, ?'d': object.?none}", map[string]any{"a": int64(1), "b": "x", "c": int64(3)}},
		"so may a list":                                  {"[1, 'x', object.half, ?object.?none]", []any{int64(1), "x", 0.5}},
		"a quantity of the cluster is a text":            {"capacity['cpu']", "1500m"},
		"the object itself may be given":                 {"object.map", map[string]any{"z": "1", "b": "2", "m": "3"}},
		"a map is gone through in the order of its keys": {"object.map.map(k, k)", []any{"b", "m", "z"}},
		"so is one of texts":                             {"labels.map(k, k + labels[k])", []any{"a2", "teamsre", "z1"}},
		"so is one that the expression makes":            {"{'z': 1, 'a': 2, 'q': 3}.map(k, k)", []any{"a", "q", "z"}},
		"so is one of two variables":                     {"object.map.transformList(k, v, k + v)", []any{"b2", "m3", "z1"}},
		"so is one that is made on the way":              {"object.map.transformMap(k, v, v + k).map(k, k)", []any{"b", "m", "z"}},
		"so is one with keys that are numbers":           {"{10: 'a', 9: 'b'}.map(k, k)", []any{int64(9), int64(10)}},
		"lists are folded":                               {"values.map(v, int(v.value)).sum()", int64(3)},
		"the libraries of Kubernetes are there":          {"semver('1.36.0').isGreaterThan(semver('1.9.0'))", true},
		"the version of an operator is a text":           {"operators['rotors'].version + ' ' + operators[?'certs'].version.orValue('')", "1.2.0 1.19.1"},
		"an operator that is missing can be asked for":   {"[operators[?'none'].version.orValue('-'), operators[?'rotors'].installed.orValue(false), 'none' in operators]", []any{"-", true, false}},
		"operators are gone through by name":             {"operators.map(o, o + (operators[o].installed ? '+' : '-'))", []any{"certs-", "rotors+"}},
		"operators are maps in a value":                  {"operators", map[string]any{"rotors": map[string]any{"version": "1.2.0", "installed": true}, "certs": map[string]any{"version": "1.19.1", "installed": false}}},
		"what is missing can be asked for":               {"object.?none.orValue(7)", int64(7)},
		"functions that are priced do what they did":     {"[object.text.replace('b', '-'), object.items.join(','), '%s!'.format([object.text]), object.text.find('b.')]", []any{"a-c", "x,y", "abc!", "bc"}},
		"so do those that say yes or no": {
			"['x' in object.items, 'z' in object.map, 'q' in labels, object.items == ['x', 'y'], object.map != object.map, object.text.matches('^b'), sets.contains(object.items, ['y']), 1 == dyn(1.0)]",
			[]any{true, true, false, true, false, false, true, true},
		},
		"so do those of lists": {"[[1, 2, 2].distinct().size(), object.items.indexOf('y'), 'abcb'.lastIndexOf('b'), lists.range(3).sum(), [[1], [2]].flatten().size(), 'a,b'.split(',').size()]", []any{int64(2), int64(1), int64(3), int64(3), int64(2), int64(2)}},
	}
	env := environmentOfTest()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, err := env.CompileValue(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 { // several times, because Go visits maps in random order
				got, err := x.Value(valuesOfTest(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Fatalf("value (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestWhatIsHandedInIsNotPartOfTheValue(t *testing.T) {
	values := valuesOfTest()
	x, err := environmentOfTest().CompileValue("object.map")
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Value(values, nil)
	if err != nil {
		t.Fatal(err)
	}
	got.(map[string]any)["z"] = "other"
	if diff := cmp.Diff(valuesOfTest()["object"], values["object"]); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestFailure(t *testing.T) {
	doubled := "[object]" + strings.Repeat(".map(a, [a, a])", 30)
	tests := map[string]struct{ text, want string }{
		"a field that is not there":                       {"object.none", "no such key"},
		"a label that is not there":                       {"labels['none']", "no such key"},
		"types that do not go together":                   {"object.three * 1.5", "no such overload"},
		"a division by zero":                              {"1 / (object.three - 3)", "division by zero"},
		"a text that is no number, which is not repeated": {"int(object.secret)", "type conversion error"},
		"an optional value":                               {"dyn(object.?three)", "gives an optional value: use orValue() or value()"},
		"bytes":                                           {"dyn(bytes(object.text))", "gives a value of type bytes, which JSON does not have: convert it, such as with string()"},
		"a time":                                          {"[timestamp('2026-01-01T00:00:00Z')]", "gives a value of type google.protobuf.Timestamp, which JSON does not have: convert it, such as with string()"},
		"not a number":                                    {"0.0 / (object.half - 0.5)", "gives a number that JSON does not have: NaN or infinite"},
		"a number that is too large":                      {"uint(9223372036854775807) + uint(object.three)", "gives a number that is too large"},
		"a key that is no text":                           {"{object.three: 1}", "gives a map with a key of type int: JSON has only strings, use string()"},
		"a result that doubles":                           {doubled, "gives more than 64 KiB"},
		"a result that is too deep":                       {"[object]" + strings.Repeat(".map(a, [[[a]]])", 30), "gives more than 64 levels of lists and maps"},
		"loops in loops":                                  {"labels.all(a, labels.all(b, labels.all(c, a + b + c != '')))", "cost limit exceeded"},
	}
	env := environmentOfTest()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			values := valuesOfTest()
			if strings.HasPrefix(name, "loops") {
				for _, k := range strings.Split("abcdefghijklmnopqrs", "") {
					values["labels"].(map[string]string)[k] = ""
				}
			}
			x, err := env.CompileValue(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			v, err := x.Value(values, nil)
			var failure *EvaluationError
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, error %v", v, err)
			}
			if failure.Reason != tc.want || strings.Contains(failure.Where(), "hunter2") {
				t.Errorf("%s, want %s", failure.Where(), tc.want)
			}
		})
	}
}

func TestAFailureSaysWhere(t *testing.T) {
	x, err := environmentOfTest().CompileValue("1 +\n  object.none")
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Value(valuesOfTest(), nil)
	var failure *EvaluationError
	if !errors.As(err, &failure) || failure.Line != 2 {
		t.Errorf("error %+v", failure)
	}
}

func TestAConditionMayBeAFieldOfAnOperator(t *testing.T) {
	for text, want := range map[string]bool{
		"operators['rotors'].installed": true, "operators[?'rotors'].installed.orValue(false)": true, "operators[?'none'].installed.orValue(false)": false,
		"has(operators.certs.installed) && operators.certs.installed": false,
	} {
		x, err := environmentOfTest().CompileBool(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Holds(valuesOfTest(), nil); err != nil || got != want {
			t.Errorf("%s is %t: %v", text, got, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	numbers := "[" + strings.Repeat("1,", 99) + "1]"
	bool := func(e *Environment, text string) error { _, err := e.CompileBool(text); return err }
	value := func(e *Environment, text string) error { _, err := e.CompileValue(text); return err }
	integer := func(e *Environment, text string) error {
		_, err := e.CompileValue(text, cel.IntType, cel.ListType(cel.IntType))
		return err
	}
	tests := map[string]struct {
		compile    func(*Environment, string) error
		text, want string
	}{
		"a name that is not there":            {value, "cluster.nam", "line 1, column 1: undeclared reference to 'cluster'"},
		"a field that operators do not have":  {bool, "operators['rotors'].ready", "undefined field 'ready'"},
		"a version for a condition":           {bool, "operators['rotors'].version", "the result of the expression must be true or false, not string"},
		"an operator as a value":              {value, "operators['rotors']", "gives a value of type hanse.Operator"},
		"what cannot be read":                 {value, "object.(", "line 1, column 8: Syntax error"},
		"a value for a condition":             {bool, "object.three", "the result of the expression must be true or false, not dyn"},
		"a type that JSON does not have":      {value, "b'a'", "gives a value of type bytes"},
		"a type":                              {value, "type(1)", "gives a value of type type(int)"},
		"an optional value":                   {value, "object.?three", "gives a value of type optional_type(dyn)"},
		"a type that is not wanted":           {integer, "'a'", "the expression must be of type int or list(int), not string"},
		"a text that is too long":             {value, "'" + strings.Repeat("a", MaxLength) + "'", "more than 4096 bytes"},
		"loops that cost too much":            {value, numbers + ".all(a, " + numbers + ".all(b, " + numbers + ".all(c, a + b + c > 0)))", "costs too much, even with lists of 8 items"},
		"loops over what is not known yet":    {value, "values.all(a, values.all(b, values.all(c, values.all(d, values.all(e, a.x + b.x + c.x + d.x + e.x > 0)))))", "costs too much, even with lists of 8 items"},
		"a long list out of nothing":          {value, "lists.range(1000000000)", "costs too much"},
		"a chain of macros":                   {value, "[0]" + strings.Repeat(".map(a, {a: a})", 33), "more than 32 macros"},
		"a regular expression that is large":  {value, "object.text.matches('" + strings.Repeat("a{1000}", 500) + "b')", "a regular expression that is too large"},
		"a regular expression that is broken": {value, "object.text.matches('(')", "invalid matches argument"},
		"parentheses without end":             {value, strings.Repeat("(", 4000), "recursion"},
		"brackets without end":                {value, strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "recursion"},
		"choices without end":                 {value, strings.Repeat("true?", 800), "line 1"},
		"a chain without end":                 {value, "object" + strings.Repeat(".a", 2000), "recursion"},
	}
	env := environmentOfTest()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.compile(env, tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 1000 {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestABudgetEndsWithItsEvaluations(t *testing.T) {
	x, err := environmentOfTest().CompileBool("labels.all(k, labels.all(l, k + l != ''))")
	if err != nil {
		t.Fatal(err)
	}
	budget := NewBudget(100)
	for i := range 1000 {
		ok, err := x.Holds(valuesOfTest(), budget)
		if failure := (*EvaluationError)(nil); errors.As(err, &failure) {
			if i == 0 || failure.Reason != reasonBudget {
				t.Errorf("evaluation %d: %v", i, err)
			}
			return
		}
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	t.Error("the budget has no end")
}

func TestReads(t *testing.T) {
	tests := map[string]struct {
		text string
		want []Reading
	}{
		"a variable":            {"cluster.name == 'eu'", []Reading{{Variable: "cluster.name"}}},
		"one entry":             {"labels['team'] == 'sre' && labels.tier == '1' && 'z' in labels && labels.?a.orValue('') == ''", []Reading{{"labels", "team"}, {"labels", "tier"}, {"labels", "z"}, {"labels", "a"}}},
		"an operator":           {"operators['rotors'].installed && operators[?'certs'].installed.orValue(false)", []Reading{{"operators", "rotors"}, {"operators", "certs"}}},
		"all of it, in a macro": {"labels.exists(l, l == 'a')", []Reading{{Variable: "labels"}}},
	}
	env := environmentOfTest()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, err := env.CompileBool(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, x.Reads()); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasReadIsKeptForAWhile(t *testing.T) {
	env := environmentOfTest()
	first, err := env.CompileBool("labels['a'] == 'first'")
	if err != nil {
		t.Fatal(err)
	}
	again, err := env.CompileBool("labels['a'] == 'first'")
	if err != nil || first != again {
		t.Errorf("read twice, error %v", err)
	}
	for i := range 3 * generation {
		env.programs.entry(strings.Repeat("a", i))
	}
	if n := len(env.programs.new) + len(env.programs.old); n > 2*generation {
		t.Errorf("%d are kept", n)
	}
}
