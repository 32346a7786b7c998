package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/yaml"
)

// Fault is an incompatible change, or a line in the file of accepted changes to which no change corresponds.
type Fault struct {
	Where string // such as "placements.hanse.dev v1alpha1 ^.spec.priority maximum"
	What  string
}

func (f Fault) String() string { return f.Where + ": " + f.What }

// rules are the settings for crdify, which compares two schemas of a CRD. crdify treats every kind of change that it
// cannot judge as incompatible.
var rules = config.Config{Validations: []config.ValidationConfig{
	{Name: "description", Enforcement: config.EnforcementPolicyNone},
	{Name: "existingFieldRemoval", Enforcement: config.EnforcementPolicyNone}, // compare reports each removed field itself
	{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
}}

// Check compares the definitions in two folders. accepted is the path of a file with one line for each accepted change:
// Fault.Where, then " # " and the reason.
func Check(oldFolder, newFolder, accepted string) ([]Fault, error) {
	before, err := readFolder(oldFolder)
	if err != nil {
		return nil, err
	}
	after, err := readFolder(newFolder)
	if err != nil {
		return nil, err
	}
	allowed, err := readAccepted(accepted)
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for name, crd := range before {
		found, err := compare(crd, after[name])
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", name, err)
		}
		faults = append(faults, found...)
	}
	used := map[string]bool{}
	faults = slices.DeleteFunc(faults, func(f Fault) bool {
		used[f.Where] = true
		return allowed[f.Where]
	})
	for where := range allowed {
		if !used[where] {
			faults = append(faults, Fault{where, "is accepted in " + filepath.Base(accepted) + ", but there is no such change"})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return faults, nil
}

// compare returns the incompatible changes of one definition. after is nil if the definition was removed. It compares
// each version only with the same version, because the API server converts objects between versions.
func compare(before, after *apiextensionsv1.CustomResourceDefinition) ([]Fault, error) {
	if after == nil {
		return []Fault{{before.Name, "the definition was removed"}}, nil
	}
	var faults []Fault
	for _, v := range before.Spec.Versions {
		now := validations.GetCRDVersionByName(after, v.Name)
		where := before.Name + " " + v.Name
		switch {
		case now == nil, v.Served && !now.Served:
			faults = append(faults, Fault{where, "the version is not served any more"})
			continue
		case v.Subresources != nil && v.Subresources.Status != nil && (now.Subresources == nil || now.Subresources.Status == nil):
			faults = append(faults, Fault{where, "the subresource status was removed"})
		}
		for _, field := range v.SelectableFields {
			if !slices.Contains(now.SelectableFields, field) {
				faults = append(faults, Fault{where + " selectableFields", field.JSONPath + " was removed"})
			}
		}
		if v.Schema != nil && now.Schema != nil {
			dropEqualRules(v.Schema.OpenAPIV3Schema, now.Schema.OpenAPIV3Schema)
		}
	}
	run, err := runner.New(&rules, runner.DefaultRegistry())
	if err != nil {
		return nil, fmt.Errorf("configuring crdify: %w", err)
	}
	results := run.Run(before, after)
	for _, r := range results.CRDValidation {
		faults = append(faults, faultsOf(before.Name, r)...)
	}
	for _, version := range results.SameVersionValidation {
		fields := validations.FlattenCRDVersion(*validations.GetCRDVersionByName(after, version.Version))
		for _, property := range version.PropertyComparisons {
			where := before.Name + " " + version.Version + " " + property.Property
			if fields[property.Property] == nil {
				faults = append(faults, Fault{where, "the field was removed"})
				continue
			}
			for _, r := range property.ComparisonResults {
				faults = append(faults, faultsOf(where, r)...)
			}
		}
	}
	return faults, nil
}

func faultsOf(where string, r validations.ComparisonResult) []Fault {
	if len(r.Errors) == 0 {
		return nil
	}
	return []Fault{{where + " " + r.Name, strings.Join(r.Errors, "; ")}}
}

// dropEqualRules removes all CEL rules from the old schema, and the unchanged rules from the new one. crdify cannot
// compare rules, and reports each remaining rule as a change. A removed rule, or a rule with a changed message only, is
// compatible, because it refuses no more objects than before.
func dropEqualRules(before, after *apiextensionsv1.JSONSchemaProps) {
	if before == nil || after == nil {
		return
	}
	after.XValidations = slices.DeleteFunc(slices.Clone(after.XValidations), func(r apiextensionsv1.ValidationRule) bool {
		return slices.ContainsFunc(before.XValidations, func(was apiextensionsv1.ValidationRule) bool { return was.Rule == r.Rule })
	})
	before.XValidations = nil
	if len(after.XValidations) == 0 {
		after.XValidations = nil
	}
	for name, property := range before.Properties {
		if now, ok := after.Properties[name]; ok {
			dropEqualRules(&property, &now)
			before.Properties[name], after.Properties[name] = property, now
		}
	}
	if before.Items != nil && after.Items != nil {
		dropEqualRules(before.Items.Schema, after.Items.Schema)
	}
	if before.AdditionalProperties != nil && after.AdditionalProperties != nil {
		dropEqualRules(before.AdditionalProperties.Schema, after.AdditionalProperties.Schema)
	}
}

// readFolder reads the definitions of a folder, by name.
func readFolder(folder string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", folder, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("the folder %s has no *.yaml", folder)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", path, err)
		}
		found[crd.Name] = crd
	}
	return found, nil
}

// readAccepted reads the file of accepted changes. It returns an error for a line without a reason.
func readAccepted(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the accepted changes: %w", err)
	}
	accepted := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		where, reason, _ := strings.Cut(line, " # ")
		if strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("parsing %s: the line %q has no reason after \" # \"", path, line)
		}
		accepted[strings.TrimSpace(where)] = true
	}
	return accepted, nil
}
