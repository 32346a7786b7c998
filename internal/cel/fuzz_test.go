package cel

import (
	"errors"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzExpression fails on an expression that panics, returns two different results, or returns a value beyond the
// limits.
func FuzzExpression(f *testing.F) {
	f.Add("object.a.map(k, {'name': k})", `{"a":{"z":1,"b":[null,1.5]}}`)
	f.Add("[object]"+".map(a, [a, a]).map(a, [a, a])"+".all(x, x == x)", `{}`)
	f.Add("object.?a[?0].orValue(dyn('%s'.format([object])))", `{"a":["x"]}`)
	f.Add("object.transformMap(k, v, [v, v]).transformList(k, v, k).join(',').replace('a', 'bb')", `{"a":1,"b":"2"}`)
	f.Add("lists.range(size(object)).map(i, i * i).sum() / 0", `{"a":1}`)
	f.Add("semver(object.v, true).major() == 1 ? capacity.cpu : quantity('1Gi')", `{"v":"v1.2.3"}`)
	f.Add("sets.contains([object.a], [object.b]) || object.a.matches(object.b)", `{"a":"(a*)*","b":"[["}`)
	f.Add("ip(object.a).family() + cidr('10.0.0.0/8').prefixLength() + int(url('http://x:1').getPort())", `{"a":"1.2.3.4"}`)
	env := environmentOfTest()
	f.Fuzz(func(t *testing.T, text, object string) {
		values := valuesOfTest()
		var decoded any
		if utiljson.Unmarshal([]byte(object), &decoded) != nil {
			return
		}
		values["object"] = decoded
		if x, err := env.CompileBool(text); err == nil {
			_, _ = x.Holds(values, nil)
		}
		x, err := env.CompileValue(text)
		if err != nil {
			return
		}
		one, err := x.Value(values, nil)
		other, otherErr := x.Value(values, nil)
		if (err == nil) != (otherErr == nil) {
			t.Fatalf("errors %v and %v", err, otherErr)
		}
		if failure := (*EvaluationError)(nil); err != nil && !errors.As(err, &failure) {
			t.Fatalf("error %T", err)
		}
		first, err := utiljson.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		second, err := utiljson.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if string(first) != string(second) {
			t.Fatalf("two values:\n%s\n%s", first, second)
		}
		if len(first) > 8*MaxResultBytes {
			t.Fatalf("a value of %d bytes", len(first))
		}
	})
}
