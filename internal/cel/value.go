package cel

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// These are the limits of the result of an expression.
const (
	MaxResultBytes = 64 << 10 // approximate size of the result as JSON
	MaxResultDepth = 64       // levels of lists and maps
)

var (
	errLarge = fmt.Errorf("gives more than %d KiB", MaxResultBytes>>10)
	errDeep  = fmt.Errorf("gives more than %d levels of lists and maps", MaxResultDepth)
)

// toJSON converts a CEL value to decoded JSON. levels is the number of further levels of lists and maps that the value
// may have. toJSON subtracts the size of the value from left, and fails if left becomes negative. A part that occurs
// several times is counted each time.
func toJSON(v ref.Val, levels int, left *int) (any, error) {
	out, size, err := scalar(v)
	if *left -= size; *left < 0 {
		return nil, errLarge
	}
	if err != nil || size > 0 {
		return out, err
	}
	if levels == 0 {
		return nil, errDeep
	}
	*left -= 2
	switch v := v.(type) {
	case traits.Lister:
		return listToJSON(v, levels-1, left)
	case traits.Mapper:
		return mapToJSON(v, levels-1, left)
	}
	return nil, notJSON(v.Type())
}

// scalar converts a value that is neither a list nor a map, and returns its size. The size is 0 for a list, a map, or a
// value of a type that JSON does not have.
func scalar(v ref.Val) (out any, size int, err error) {
	switch v := v.(type) {
	case types.Null:
		return nil, 4, nil
	case types.Bool:
		return bool(v), 5, nil
	case types.Int:
		return int64(v), 8, nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, 8, errors.New("gives a number that is too large")
		}
		return int64(v), 8, nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, 8, errors.New("gives a number that JSON does not have: NaN or infinite")
		}
		return float64(v), 8, nil
	case types.String:
		if !utf8.ValidString(string(v)) {
			return nil, 2 + len(v), errors.New("gives text that is not UTF-8")
		}
		return string(v), 2 + len(v), nil
	case apiservercel.Quantity:
		s := v.String()
		return s, 2 + len(s), nil
	case *apiservercel.Quantity:
		s := v.String()
		return s, 2 + len(s), nil
	case *types.Err:
		return nil, 1, errors.New("the evaluation failed")
	case *types.Optional:
		return nil, 1, errors.New("gives an optional value: use orValue() or value()")
	}
	return nil, 0, nil
}

func notJSON(t ref.Type) error {
	name := t.TypeName()
	if c, ok := t.(*cel.Type); ok {
		name = c.String()
	}
	return fmt.Errorf("gives a value of type %s, which JSON does not have: convert it, such as with string()", name)
}

func listToJSON(l traits.Lister, levels int, left *int) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, err := toJSON(it.Next(), levels, left)
		if err != nil {
			return nil, err
		}
		if *left--; *left < 0 {
			return nil, errLarge
		}
		out = append(out, item)
	}
	return out, nil
}

func mapToJSON(m traits.Mapper, levels int, left *int) (any, error) {
	out := map[string]any{}
	for it := (orderedMap{m}).Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		key, ok := k.(types.String)
		if !ok {
			return nil, fmt.Errorf("gives a map with a key of type %s: JSON has only strings, use string()", k.Type().TypeName())
		}
		if *left -= len(key) + 4; *left < 0 {
			return nil, errLarge
		}
		v, err := toJSON(m.Get(key), levels, left)
		if err != nil {
			return nil, err
		}
		out[string(key)] = v
	}
	return out, nil
}
