package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// clusterFlags are the flags of join that set fields of the MemberCluster.
type clusterFlags struct {
	region, zone      string
	labels            map[string]string
	allowedNamespaces string
	leavePolicy       string
	hubItself         bool

	// given reports whether the user has set a flag. If the MemberCluster exists, join changes only fields whose flags the
	// user has set.
	given func(flag string) bool
}

const (
	allowedFlag = "allowed-namespaces"
	leaveFlag   = "leave-policy"
)

func (c *clusterFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&c.region, "region", "", "Region of the member, as label "+hubv1.RegionLabel+". Read from its nodes if it is not given.")
	f.StringVar(&c.zone, "zone", "", "Zone of the member, as label "+hubv1.ZoneLabel+". Read from its nodes if it is not given.")
	f.StringToStringVar(&c.labels, "labels", nil, "Labels of the MemberCluster, as key=value,key=value.")
	f.StringVar(&c.allowedNamespaces, allowedFlag, "All", "Hub namespaces whose objects may go to the member: All, None, or a label selector such as team=metrics.")
	f.StringVar(&c.leavePolicy, leaveFlag, string(hubv1.RemovalOrphan), "What happens to the member's copies when it leaves: Orphan or Delete.")
	f.BoolVar(&c.hubItself, "hub-itself", false, "The cluster is the hub itself: the hub writes nothing to it, because the hub objects already exist there.")
}

// wanted returns a new MemberCluster with the values of the flags. The MemberCluster refers to a Secret of the same
// name, which has the kubeconfig of the cluster.
func (c *clusterFlags) wanted(name string) (*hubv1.MemberCluster, error) {
	leave := hubv1.RemovalPolicy(c.leavePolicy)
	if leave != hubv1.RemovalOrphan && leave != hubv1.RemovalDelete {
		return nil, fmt.Errorf("--leave-policy %q: %w: want Orphan or Delete", c.leavePolicy, errValue)
	}
	allowed, err := parseAllowed(c.allowedNamespaces)
	if err != nil {
		return nil, err
	}
	labels, err := c.wantedLabels()
	if err != nil {
		return nil, err
	}
	return &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: hubv1.MemberClusterSpec{
			Connection: hubv1.Connection{
				Type:   hubv1.ConnectionDirect,
				Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: secretKey}},
			},
			AllowedNamespaces: allowed,
			Hub:               c.hubItself,
			Leave:             hubv1.LeavePolicy{Policy: leave},
		},
	}, nil
}

func parseAllowed(text string) (hubv1.AllowedNamespaces, error) {
	switch text {
	case string(hubv1.NamespacesFromAll), string(hubv1.NamespacesFromNone):
		return hubv1.AllowedNamespaces{From: hubv1.NamespacesFrom(text)}, nil
	case "":
		return hubv1.AllowedNamespaces{}, fmt.Errorf("--allowed-namespaces \"\": %w: want All, None or a label selector", errValue)
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return hubv1.AllowedNamespaces{}, fmt.Errorf("--allowed-namespaces %q: want All, None or a label selector: %w", text, err)
	}
	return hubv1.AllowedNamespaces{From: hubv1.NamespacesFromSelector, Selector: selector}, nil
}

func (c *clusterFlags) wantedLabels() (map[string]string, error) {
	labels := map[string]string{}
	maps.Copy(labels, c.labels)
	for _, l := range []struct{ flag, key, value string }{{"--region", hubv1.RegionLabel, c.region}, {"--zone", hubv1.ZoneLabel, c.zone}} {
		if l.value == "" {
			continue
		}
		if other, set := labels[l.key]; set && other != l.value {
			return nil, fmt.Errorf("%s %q and --labels %s=%s: %w: the values differ", l.flag, l.value, l.key, other, errValue)
		}
		labels[l.key] = l.value
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...)
		if len(faults) > 0 {
			return nil, fmt.Errorf("label %s=%s: %w: %s", key, labels[key], errValue, strings.Join(faults, "; "))
		}
	}
	return labels, nil
}

// change sets the fields of member to the values in wanted. If the MemberCluster exists, change sets only fields whose
// flags the user has set.
func (c *clusterFlags) change(member, wanted *hubv1.MemberCluster) {
	if member.Labels == nil && len(wanted.Labels) > 0 {
		member.Labels = map[string]string{}
	}
	maps.Copy(member.Labels, wanted.Labels)
	if member.ResourceVersion == "" {
		member.Spec = wanted.Spec
		return
	}
	if c.given(allowedFlag) {
		member.Spec.AllowedNamespaces = wanted.Spec.AllowedNamespaces
	}
	if c.hubItself {
		member.Spec.Hub = true
	}
	if c.given(leaveFlag) {
		member.Spec.Leave.Policy = wanted.Spec.Leave.Policy
	}
}
