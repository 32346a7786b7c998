package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

func TestBundleOfTheChart(t *testing.T) {
	r := onRepository(t)
	if err := r.writeBundle(t.Context(), committed); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.out, "bundle")
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("names the version and the images of the release", func(t *testing.T) {
		spec := bundle.CSV.Spec
		image := spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
		if bundle.CSV.Name != "hanse-hub.v0.7.0-rc.1" || spec.Version.String() != "0.7.0-rc.1" || image != "ghcr.io/hanse-dev/hanse-hub:0.7.0-rc.1" {
			t.Errorf("name %s, version %s, image %s", bundle.CSV.Name, spec.Version, image)
		}
	})
	t.Run("gives the hub no cluster-wide right to Secrets", func(t *testing.T) {
		strategy := bundle.CSV.Spec.InstallStrategy.StrategySpec
		if len(strategy.Permissions) > 0 {
			t.Errorf("OLM makes ClusterRoles of the permissions %v", strategy.Permissions)
		}
		for _, p := range strategy.ClusterPermissions {
			for _, rule := range p.Rules {
				if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*") {
					t.Errorf("the cluster permission %v", rule)
				}
			}
		}
	})
	t.Run("has every kind of the API as an owned definition", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(r.root, "charts", hubChart, "files", "crds", "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("the chart has no CRDs: %v", err)
		}
		if got := len(bundle.CSV.Spec.CustomResourceDefinitions.Owned); got != len(files) {
			t.Errorf("%d owned definitions, want %d", got, len(files))
		}
	})
	t.Run("has examples that the API server takes", func(t *testing.T) {
		var examples []map[string]any
		if err := json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples"]), &examples); err != nil {
			t.Fatal(err)
		}
		if want := len(bundle.V1CRDs) - len(internal); len(examples) != want {
			t.Errorf("%d examples, want %d", len(examples), want)
		}
		for _, example := range examples {
			i := slices.IndexFunc(bundle.V1CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
				return crd.Spec.Names.Kind == example["kind"]
			})
			if errs := validate(t, bundle.V1CRDs[i], example); len(errs) > 0 {
				t.Errorf("%v: %v", example["kind"], errs.ToAggregate())
			}
		}
	})
	t.Run("is an image with the labels of the bundle", func(t *testing.T) {
		err := withImage(filepath.Join(r.out, bundleName+".tar"), func(image openImage) error {
			single, err := image.index.Image(image.entry.Digest)
			if err != nil {
				return err
			}
			config, err := single.ConfigFile()
			if err != nil {
				return err
			}
			if got := config.Config.Labels["operators.operatorframework.io.bundle.package.v1"]; got != hubChart {
				t.Errorf("the package is %q, want %q", got, hubChart)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// validate checks an object with the schema and the CEL rules of its definition, as an API server does at a create.
func validate(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, object map[string]any) field.ErrorList {
	t.Helper()
	var internalSchema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internalSchema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internalSchema)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&internalSchema)
	if err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidateCustomResource(nil, object, validator)
	byRules, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, byRules...)
}

func TestBrokenBundles(t *testing.T) {
	r := onRepository(t)
	if err := r.writeBundle(t.Context(), committed); err != nil {
		t.Fatal(err)
	}
	const csv = "manifests/hanse-hub.clusterserviceversion.yaml"
	tests := map[string]struct {
		breaks    func(t *testing.T, dir string)
		wantError string
	}{
		"a missing definition is found": {
			breaks: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dir, "manifests/hanse.dev_placements.yaml")); err != nil {
					t.Fatal(err)
				}
			},
			wantError: "owned CRD",
		},
		"a missing ClusterServiceVersion is found": {
			breaks: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dir, csv)); err != nil {
					t.Fatal(err)
				}
			},
			wantError: "unable to find a csv",
		},
		"a ServiceAccount that OLM makes too is found": {
			breaks: func(t *testing.T, dir string) {
				t.Helper()
				account := file{"manifests/account.yaml", 0o644, []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: hanse-hub}\n")}
				if err := writeFiles(dir, []file{account}); err != nil {
					t.Fatal(err)
				}
			},
			wantError: "invalid service account",
		},
		"no supported install mode is found": {breaks: replace(csv, "supported: true", "supported: false"), wantError: "InstallModeTypes"},
		"a bad minimal version is found":     {breaks: replace(csv, "minKubeVersion: 1.30.0", "minKubeVersion: soon"), wantError: "MinKubeVersion"},
		"a category that is none is found":   {breaks: replace(csv, "Integration & Delivery", "Ships"), wantError: "categories"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bundle")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(r.out, "bundle"))); err != nil {
				t.Fatal(err)
			}
			if err := ValidateBundle(dir, io.Discard); err != nil {
				t.Fatalf("the bundle is broken before: %v", err)
			}
			tt.breaks(t, dir)
			wantError(t, ValidateBundle(dir, io.Discard), tt.wantError)
		})
	}
}

// replace returns a function that replaces a text in a file. It fails the test if the file does not have the text.
func replace(name, before, after string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), before) {
			t.Fatalf("%s has no %q", name, before)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), before, after)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
