package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

// allMembers is the value of --members that stands for all members.
const allMembers = "all"

// onMembers shows what the hub may write in addition on each chosen member, and returns the steps that grant it.
func (f *federate) onMembers(ctx context.Context, c client.Client) ([]step, error) {
	admins, err := f.admins(ctx)
	if err != nil {
		return nil, err
	}
	members, err := f.chosen(ctx, c)
	if err != nil {
		return nil, err
	}
	var steps []step
	var others []string
	for i := range members {
		m := &members[i]
		admin := admins[m.Status.ClusterID]
		if admin.memberCluster == nil || m.Status.ClusterID == "" {
			others = append(others, m.Name)
			continue
		}
		more, err := f.onMember(ctx, m.Name, admin)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", m.Name, err)
		}
		delete(admins, m.Status.ClusterID)
		steps = append(steps, more...)
	}
	for _, unused := range admins {
		return nil, fmt.Errorf("--member-kubeconfig %s: it is for none of the chosen members: name its member with --members", unused.flags.kubeconfig)
	}
	return steps, f.printOthers(ctx, c, others)
}

// admin is a connection to a member as its admin.
type admin struct {
	*memberCluster
	flags memberFlags
}

// admins connects to the members of --member-kubeconfig. The keys are the IDs of the clusters.
func (f *federate) admins(ctx context.Context) (map[string]admin, error) {
	out := map[string]admin{}
	for _, file := range f.kubeconfigs {
		flags := memberFlags{kubeconfig: file}
		m, err := flags.open(ctx, f.hub, "")
		if err != nil {
			return nil, err
		}
		out[m.clusterID] = admin{m, flags}
	}
	return out, nil
}

// chosen returns the members of --members.
func (f *federate) chosen(ctx context.Context, c client.Client) ([]hubv1.MemberCluster, error) {
	if len(f.members) == 0 && len(f.kubeconfigs) == 0 {
		return nil, nil
	}
	all, err := listClusters(ctx, c)
	if err != nil || len(f.members) == 0 || slices.Contains(f.members, allMembers) {
		return all, err
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	for _, name := range f.members {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--members: no MemberCluster is named %s: %s", name, preview.ThereAre(names))
		}
	}
	return slices.DeleteFunc(all, func(m hubv1.MemberCluster) bool { return !slices.Contains(f.members, m.Name) }), nil
}

// onMember shows what the hub may write in addition on one member, and returns the step that grants it.
func (f *federate) onMember(ctx context.Context, name string, m admin) ([]step, error) {
	out := f.hub.streams.Out
	fmt.Fprintf(out, "Member %s at %s\n", name, m.address.server)
	account := &corev1.ServiceAccount{}
	err := m.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: accountName}, account)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNotJoined
	case err != nil:
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", accountName, err)
	case ours(account):
		return f.byJoin(ctx, name, m)
	}
	of, err := readInstallation(ctx, m, memberChart)
	if err != nil {
		return nil, err
	}
	change, err := of.with(f.kinds)
	if err != nil {
		return nil, err
	}
	if len(change.added) == 0 {
		printLine(out, of.String(), "the member grants these kinds already")
		return nil, nil
	}
	if err := change.print(ctx, out); err != nil {
		return nil, err
	}
	if !of.byHelm() {
		return nil, change.printValues(out)
	}
	return []step{{"the release " + of.release.Name + " on " + name, func(ctx context.Context) error {
		fmt.Fprintf(out, "Member %s\n", name)
		return change.upgrade(ctx, out, []string{"--kubeconfig", m.flags.kubeconfig})
	}}}, nil
}

var errNotJoined = errors.New("it has no ServiceAccount of the hub: run hansectl join first, with --grant")

// byJoin shows and grants kinds on a member whose roles hansectl join has made.
func (f *federate) byJoin(ctx context.Context, name string, m admin) ([]step, error) {
	granted, err := chartGrants(ctx, m.memberCluster)
	if err != nil {
		return nil, err
	}
	var change grantChange
	for _, k := range f.kinds {
		kind := kindGrant{k.Group, k.Resource}
		if granted == nil || !slices.Contains(granted.kinds, kind.String()) {
			change.add = append(change.add, kind)
		}
	}
	if len(change.add) == 0 {
		printLine(f.hub.streams.Out, "clusterrole/"+accountName, "the member grants these kinds already")
		return nil, nil
	}
	for _, kind := range change.add {
		printLine(f.hub.streams.Out, "", "+ %s", kind)
	}
	return []step{{"the grants of " + name, func(ctx context.Context) error {
		fmt.Fprintf(f.hub.streams.Out, "Member %s\n", name)
		_, err := change.set(ctx, f.hub.streams.Out, m.memberCluster)
		return err
	}}}, nil
}

// printOthers prints how to grant the kinds on members without an admin's kubeconfig. It leaves out the kinds that they
// grant already, as far as the hub can ask them.
func (f *federate) printOthers(ctx context.Context, c client.Client, members []string) error {
	if len(members) == 0 {
		return nil
	}
	asked := map[grantQuestion]string{}
	resources := map[grantQuestion]string{}
	for _, member := range members {
		for _, k := range f.kinds {
			mapped, err := c.RESTMapper().KindFor(k.GroupResource().WithVersion(""))
			if err != nil {
				return fmt.Errorf("finding the kind of %s: %w", k.GroupResource(), err)
			}
			q := grantQuestion{member, mapped.GroupKind()}
			asked[q], resources[q] = "", k.GroupResource().String()
		}
	}
	viewer, err := f.tokenFile.open(ctx, f.hub, c)
	if err != nil {
		return err
	}
	refused, unknown := askedGrants(ctx, viewer, asked)
	for _, text := range unknown {
		fmt.Fprintf(f.hub.streams.ErrOut, "warning: not all members could be asked: %s\n", text)
	}
	for _, member := range members {
		var lacks []string
		for _, k := range f.kinds {
			for q, resource := range resources {
				if q.cluster == member && resource == k.GroupResource().String() && (refused[q] || len(unknown) > 0) {
					lacks = append(lacks, resource)
				}
			}
		}
		fmt.Fprintf(f.hub.streams.Out, "Member %s\n", member)
		if len(lacks) == 0 {
			printLine(f.hub.streams.Out, "", "grants these kinds already")
			continue
		}
		printLine(f.hub.streams.Out, "", "hansectl join %s --member-kubeconfig FILE --grant %s", member, strings.Join(lacks, ","))
		printLine(f.hub.streams.Out, "", "or add them to grantedKinds of the chart hanse-member there")
	}
	return nil
}
