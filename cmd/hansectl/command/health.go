package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/view"
)

// healthRun has the flags of the command health.
type healthRun struct {
	hub                *hub
	out                output
	files, definitions cliresource.FilenameOptions
	vocabulary         string
}

func newHealth(h *hub) *cobra.Command {
	r := &healthRun{hub: h}
	cmd := &cobra.Command{
		Use:   "health -f FILE [--definition FILE] [--vocabulary FILE]",
		Short: "Judge the health of objects in files, and show which parts of their status are understood",
		Long: `Judge the health of objects in files as the hub judges their copies. No request is sent to a server.

  Health    Healthy, Progressing, Degraded or Unknown
  Why       the reason and message that a row of the object would have
  Ignored   conditions and fields of the status that are not understood
  READ      conditions and fields that are understood, and what each of them would mean alone

A kind whose healthy objects are Unknown holds waves and drains. Try a vocabulary for it here, before you set the chart
value statusVocabulary.

The definition tells which printer columns and which replicas are read. It may also be among the objects.`,
		Example: `  # The objects of a kind, as a member has them
  kubectl get lamps -A -o yaml > lamps.yaml
  kubectl get crd lamps.example.com -o yaml > crd.yaml
  hansectl health -f lamps.yaml --definition crd.yaml

  # With the vocabulary in values of the chart hanse-hub
  hansectl health -f lamps.yaml --definition crd.yaml --vocabulary values.yaml`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.out.check(cmd); err != nil {
				return err
			}
			if len(r.files.Filenames) == 0 {
				return usageError(cmd, errors.New("--filename is missing: want a file with objects"))
			}
			return r.run()
		},
	}
	r.out.addTo(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&r.files.Filenames, "filename", "f", nil, "Files or directories with objects and their status; - for standard input.")
	flags.BoolVarP(&r.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	flags.StringSliceVar(&r.definitions.Filenames, "definition", nil, "Files or directories with the CustomResourceDefinitions of the objects.")
	flags.StringVar(&r.vocabulary, "vocabulary", "", "File with values of the chart hanse-hub. Only statusVocabulary is read.")
	return cmd
}

func (r *healthRun) run() error {
	objects, err := objectsIn(r.files)
	if err != nil {
		return err
	}
	more, err := objectsIn(r.definitions)
	if err != nil {
		return err
	}
	if r.vocabulary != "" {
		if err := addVocabulary(r.vocabulary); err != nil {
			return err
		}
	}
	definitions, objects, err := definitionsIn(objects, more)
	if err != nil {
		return err
	}
	out := view.Judgements{Objects: []view.Judgement{}}
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		conventions, defined := health.Conventions{HasStatus: true}, false
		if crd := definitions[gvk.GroupKind()]; crd != nil {
			conventions, defined = health.ReadConventions(crd, gvk.Version), true
		}
		out.Objects = append(out.Objects, view.Judged(hubv1.IdentityOf(u).String(), health.Explain(u, conventions), defined))
	}
	return r.out.print(r.hub.streams.Out, out)
}

// objectsIn reads the objects in files. It opens lists.
func objectsIn(files cliresource.FilenameOptions) ([]*unstructured.Unstructured, error) {
	if len(files.Filenames) == 0 {
		return nil, nil
	}
	infos, err := cliresource.NewLocalBuilder().Unstructured().FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, info := range infos {
		if u, ok := info.Object.(*unstructured.Unstructured); ok {
			out = append(out, u)
		}
	}
	return out, nil
}

// definitionsIn returns the CustomResourceDefinitions among the objects, and in more, by the kind that they define.
// rest are the other objects.
func definitionsIn(objects, more []*unstructured.Unstructured) (definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition, rest []*unstructured.Unstructured, err error) {
	definitions = map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}
	add := func(u *unstructured.Unstructured) error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
			return fmt.Errorf("reading the CustomResourceDefinition %s: %w", u.GetName(), err)
		}
		definitions[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = &crd
		return nil
	}
	for _, u := range more {
		if u.GetKind() != "CustomResourceDefinition" {
			return nil, nil, fmt.Errorf("--definition has the %s %s: want CustomResourceDefinitions", u.GetKind(), u.GetName())
		}
		if err := add(u); err != nil {
			return nil, nil, err
		}
	}
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			rest = append(rest, u)
		} else if err := add(u); err != nil {
			return nil, nil, err
		}
	}
	return definitions, rest, nil
}

// addVocabulary adds the statusVocabulary in values of the chart hanse-hub to the vocabulary of this process.
func addVocabulary(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the vocabulary: %w", err)
	}
	var values struct {
		StatusVocabulary []any `json:"statusVocabulary"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("reading the vocabulary in %s: %w", file, err)
	}
	if len(values.StatusVocabulary) == 0 {
		return fmt.Errorf("reading the vocabulary in %s: it has no statusVocabulary", file)
	}
	text, err = yaml.Marshal(map[string]any{"kinds": values.StatusVocabulary})
	if err != nil {
		return fmt.Errorf("reading the vocabulary in %s: %w", file, err)
	}
	if err := health.Extend(text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
