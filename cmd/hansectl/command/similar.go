package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/hanse-dev/hanse/view"
)

// didYouMean returns a question with the names, which callers append to a message. It returns an empty text if there
// are no names.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// flagError improves errors about flags. For an unknown flag it suggests similar flags.
func flagError(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		if question := didYouMean(view.Similar("--"+unknown.GetSpecifiedName(), names)); question != "" {
			err = errors.New(err.Error() + question)
		}
	}
	return usageError(cmd, err)
}

// similarKinds returns the names of kinds of the hub that a mistyped kind may mean. If the mistyped kind has a group,
// these names also have their groups.
func (h *hub) similarKinds(typed string) []string {
	var names []string
	for _, r := range h.readableKinds() {
		group := ""
		if strings.Contains(typed, ".") && r.Group != "" {
			group = "." + r.Group
		}
		names = append(names, strings.ToLower(r.Kind)+group, r.Name+group)
	}
	return view.Similar(strings.ToLower(typed), names)
}

// readableKinds returns the kinds of the hub that have the verbs get and list. It skips groups whose API server does
// not answer.
func (h *hub) readableKinds() []metav1.APIResource {
	client, err := h.flags.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, _ := client.ServerPreferredResources() // with an error, lists has the groups that answer
	var kinds []metav1.APIResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"get", "list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			r.Group = version.Group
			kinds = append(kinds, r)
		}
	}
	return kinds
}
