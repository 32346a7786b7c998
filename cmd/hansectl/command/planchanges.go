package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cliresource "k8s.io/cli-runtime/pkg/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// fleetChanges are the changes of clusters that the user requests by flags of plan.
type fleetChanges struct {
	withoutClusters, withoutRegions, addClusters, setLabels []string
}

func (c *fleetChanges) addTo(cmd *cobra.Command, h *hub) {
	flags := cmd.Flags()
	flags.StringArrayVar(&c.withoutClusters, "without-cluster", nil, "A cluster that does not answer. Can be repeated.")
	flags.StringArrayVar(&c.withoutRegions, "without-region", nil, "A region in which no cluster answers. Can be repeated.")
	flags.StringArrayVar(&c.addClusters, "add-cluster", nil, "A cluster that joins: NAME[,LABEL=VALUE...], or a file with MemberClusters. Can be repeated.")
	flags.StringArrayVar(&c.setLabels, "set-label", nil, "A label of a cluster: CLUSTER:KEY=VALUE, or CLUSTER:KEY- to remove the label. Can be repeated.")
	_ = cmd.RegisterFlagCompletionFunc("without-cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	_ = cmd.RegisterFlagCompletionFunc("without-region", h.completeRegions)
}

func (c *fleetChanges) any() bool {
	return len(c.withoutClusters)+len(c.withoutRegions)+len(c.addClusters)+len(c.setLabels) > 0
}

// applyTo makes the requested changes in the fleet, which has the objects, policies and clusters of the plan. It
// returns one line of text for each change. An error names the flag and its value.
func (c fleetChanges) applyTo(ctx context.Context, f *decide.Fleet) ([]string, error) {
	f.Clusters = slices.Clone(f.Clusters)
	var texts []string
	for _, step := range []struct {
		flag   string
		values []string
		apply  func(f *decide.Fleet, value string) (string, error)
	}{
		{"add-cluster", c.addClusters, func(f *decide.Fleet, value string) (string, error) {
			return addCluster(ctx, f, value)
		}},
		{"set-label", c.setLabels, setLabel},
		{"without-cluster", c.withoutClusters, preview.LoseCluster},
		{"without-region", c.withoutRegions, preview.LoseRegion},
	} {
		for _, value := range step.values {
			what, err := step.apply(f, value)
			if err != nil {
				return nil, fmt.Errorf("--%s %q: %w", step.flag, value, err)
			}
			texts = append(texts, what)
		}
	}
	return texts, nil
}

var errLabelShape = errors.New("want CLUSTER:KEY=VALUE, or CLUSTER:KEY- to take the label off")

func setLabel(f *decide.Fleet, text string) (string, error) {
	name, label, ok := strings.Cut(text, ":")
	if !ok {
		return "", errLabelShape
	}
	key, value, sets := strings.Cut(label, "=")
	if !sets {
		if key, ok = strings.CutSuffix(label, "-"); !ok {
			return "", errLabelShape
		}
	}
	if err := checkLabel(key, value); err != nil {
		return "", err
	}
	i, err := preview.FindCluster(f, name)
	if err != nil {
		return "", err
	}
	c := f.Clusters[i].DeepCopy()
	f.Clusters[i] = c
	if !sets {
		delete(c.Labels, key)
		return fmt.Sprintf("cluster %s has no label %s", name, key), nil
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Labels[key] = value
	return fmt.Sprintf("cluster %s has the label %s=%s", name, key, value), nil
}

func checkLabel(key, value string) error {
	if why := validation.IsQualifiedName(key); len(why) > 0 {
		return fmt.Errorf("label key %q: %s", key, why[0])
	}
	if why := validation.IsValidLabelValue(value); len(why) > 0 {
		return fmt.Errorf("label value %q: %s", value, why[0])
	}
	return nil
}

// addCluster adds assumed clusters to the clusters of the plan. text is the name of a file with MemberClusters,
// or the name of a cluster with labels.
func addCluster(ctx context.Context, f *decide.Fleet, text string) (string, error) {
	var clusters []*hubv1.MemberCluster
	if isFile(text) {
		files, err := readFiles(ctx, cliresource.FilenameOptions{Filenames: []string{text}})
		if err != nil {
			return "", err
		}
		if clusters = files.clusters; len(clusters) == 0 {
			return "", errors.New("the file has no MemberCluster")
		}
	} else {
		c, err := parseCluster(text)
		if err != nil {
			return "", err
		}
		clusters = append(clusters, c)
	}
	var texts []string
	for _, c := range clusters {
		if _, err := preview.FindCluster(f, c.Name); err == nil {
			return "", fmt.Errorf("there is a MemberCluster %s already", c.Name)
		}
		f.Clusters = append(f.Clusters, assumed(c, f.Now))
		texts = append(texts, described(c))
	}
	return strings.Join(texts, "; "), nil
}

func isFile(text string) bool {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(text)) || strings.ContainsRune(text, filepath.Separator) && !strings.Contains(text, ",") {
		return true
	}
	_, err := os.Stat(text)
	return err == nil
}

// parseCluster reads NAME[,LABEL=VALUE...].
func parseCluster(text string) (*hubv1.MemberCluster, error) {
	parts := strings.Split(text, ",")
	if why := validation.IsDNS1123Label(parts[0]); len(why) > 0 {
		return nil, fmt.Errorf("name %q: %s", parts[0], why[0])
	}
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: parts[0]}}
	for _, label := range parts[1:] {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return nil, fmt.Errorf("label %q: want KEY=VALUE", label)
		}
		if err := checkLabel(key, value); err != nil {
			return nil, err
		}
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[key] = value
	}
	return c, nil
}

// assumed sets the defaults of an assumed cluster: it accepts objects of every namespace and is Ready.
func assumed(c *hubv1.MemberCluster, now time.Time) *hubv1.MemberCluster {
	c = c.DeepCopy()
	if c.Spec.AllowedNamespaces.From == "" {
		c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	}
	if meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady) == nil {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, Message: "assumed", LastTransitionTime: metav1.NewTime(now),
		})
	}
	return c
}

// described describes an added cluster, and what the plan assumes about unknown data of the cluster.
func described(c *hubv1.MemberCluster) string {
	text := fmt.Sprintf("cluster %s joins", c.Name)
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		labels = append(labels, key+"="+c.Labels[key])
	}
	if len(labels) > 0 {
		text += " with " + strings.Join(labels, ", ")
	}
	if c.Status.APIResources == nil {
		text += ", serves every kind"
	}
	if c.Status.Allocatable == nil {
		text += ", has no room where capacity counts"
	}
	return text
}
