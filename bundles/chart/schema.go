package chart

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// maxFaults is the maximum number of invalid values that an error names.
const maxFaults = 5

// validate checks values against the JSON schemas of a chart and its subcharts.
func validate(c *helmchart.Chart, values map[string]any) error {
	if c.Schema != nil {
		schema, err := compile(c.Schema)
		if err != nil {
			return fmt.Errorf("reading values.schema.json of %s: %s", c.ChartFullPath(), oneLine(err))
		}
		if err := schema.Validate(values); err != nil {
			return fmt.Errorf("the values do not fit values.schema.json of %s: %s", c.ChartFullPath(), faults(err))
		}
	}
	for _, sub := range c.Dependencies() {
		switch of := values[sub.Name()].(type) {
		case nil:
		case map[string]any:
			if err := validate(sub, of); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the value %s is of type %T: the subchart of this name needs a map", sub.Name(), of)
		}
	}
	return nil
}

// location is the URL of the chart's folder, to which references in a schema are relative. It has the three slashes
// with which the library writes all URLs of this form. With another number, a reference inside the document names a
// document that the compiler does not know.
const location = "chart:///"

// compile compiles a JSON schema. A reference to another document is an error.
func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(location+"values.schema.json", document); err != nil {
		return nil, err
	}
	return compiler.Compile(location + "values.schema.json")
}

type noLoader struct{}

// Load returns an error for each file or URL to which a schema refers, because nothing outside of the document is read.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s: put that schema into $defs, as nothing outside of values.schema.json is read",
		strings.TrimPrefix(url, location))
}

// faults returns a text with the values that a schema does not allow: the path of each value, and the reason.
func faults(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return oneLine(err)
	}
	var texts []string
	var collect func(e *jsonschema.ValidationError, key string, referred []string)
	collect = func(e *jsonschema.ValidationError, key string, referred []string) {
		switch is := e.ErrorKind.(type) {
		case *kind.Reference:
			referred = e.InstanceLocation
		case *kind.PropertyNames:
			key = fmt.Sprintf("%s: the key %q", pathOfKeys(e.SchemaURL, referred), is.Property)
		}
		for _, cause := range e.Causes {
			collect(cause, key, referred)
		}
		if len(e.Causes) == 0 { // the others, such as a reference, only say that something below them is wrong
			unit := e.BasicOutput()
			texts = append(texts, fmt.Sprintf("%s: %s", cmp.Or(key, valuePath(unit.InstanceLocation)), unit.Error))
		}
	}
	collect(invalid, "", nil)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) > maxFaults {
		texts = append(texts[:maxFaults], fmt.Sprintf("and %d more", len(texts)-maxFaults))
	}
	return oneLine(errors.New(strings.Join(texts, "; ")))
}

// pathOfKeys returns the path of the value whose keys a schema checks. The library gives no path for keys, so the path
// consists of the properties in the URL of the schema. It has no indexes of lists. referred is the path of the value
// for which the schema refers to one in $defs.
func pathOfKeys(schemaURL string, referred []string) string {
	parts := strings.Split(schemaURL, "/")
	var names []string
	for i := 0; i+1 < len(parts); i++ {
		switch parts[i] {
		case "properties":
			i++
			names = append(names, parts[i])
		case "$defs":
			i++
			names = slices.Clone(referred)
		}
	}
	return valuePath(strings.Join(names, "/"))
}

// valuePath returns a JSON pointer to a value as helm users write paths: image.tag for /image/tag.
func valuePath(pointer string) string {
	if pointer == "" {
		return "the values"
	}
	text := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(text)
}
