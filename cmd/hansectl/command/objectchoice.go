package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// objectArguments requires a kind and a name, as KIND/NAME or as two arguments.
func objectArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && strings.Count(args[0], "/") == 1 {
		return nil
	}
	return arguments("KIND", "NAME")(cmd, args)
}

// kindAndName splits arguments that objectArguments has accepted.
func kindAndName(args []string) (kind, name string) {
	if len(args) == 1 {
		kind, name, _ = strings.Cut(args[0], "/")
		return kind, name
	}
	return args[0], args[1]
}

// maxCompletions is the maximum number of names in a shell completion.
const maxCompletions = 200

// completeObjects completes kinds of the hub, and then the names of objects of the kind, also as KIND/NAME.
func (h *hub) completeObjects(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, name, together := strings.Cut(typed, "/")
	switch {
	case len(args) == 1:
		kind, name = args[0], typed
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case !together:
		return h.completeKinds(typed), cobra.ShellCompDirectiveNoFileComp
	}
	names, err := h.objectNames(cmd, kind, name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if together {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeKinds completes the plurals of kinds.
func (h *hub) completeKinds(typed string) []string {
	var names []string
	for _, r := range h.readableKinds() {
		if strings.HasPrefix(r.Name, typed) {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (h *hub) objectNames(cmd *cobra.Command, kind, typed string) ([]string, error) {
	mapper, err := h.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	mapping, err := findKind(mapper, kind)
	if err != nil {
		return nil, err
	}
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var resource metadata.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace, _, err := h.flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, err
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	list, err := resource.List(cmd.Context(), metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if n := list.Items[i].Name; strings.HasPrefix(n, typed) && len(names) < maxCompletions {
			names = append(names, n)
		}
	}
	return names, nil
}

// completePlacements completes placements as KIND/NAME.
func (h *hub) completePlacements(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return h.completeOwn(cmd, args, typed, "placement", "clusterplacement")
}

// completeOwn completes objects of some of Hanse's kinds as KIND/NAME.
func (h *hub) completeOwn(cmd *cobra.Command, args []string, typed string, kinds ...string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, kind := range kinds {
		names, err := h.objectNames(cmd, kind+"s."+hubv1.GroupVersion.Group, "")
		if err != nil {
			continue // the user may still list another kind
		}
		for _, n := range names {
			if full := kind + "/" + n; strings.HasPrefix(full, typed) {
				found = append(found, full)
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces completes the namespaces of the hub.
func (h *hub) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, err := h.objectNames(cmd, "namespaces", typed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
