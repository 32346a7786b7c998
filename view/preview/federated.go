package preview

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
)

// AskedKind is a kind that the hub has to read for a placement.
type AskedKind struct {
	Kind  schema.GroupKind
	Field string // field of the spec that names the kind, such as "resourceSelectors[0]"
}

// AskedKinds returns the kinds that the hub has to read for a placement, each once. It leaves out kinds that the hub
// reads with any values of its chart, kinds that it would run itself, and the kinds to which pod templates refer.
func AskedKinds(spec *hubv1.PlacementSpec, hubRunsWorkloads bool) []AskedKind {
	var out []AskedKind
	add := func(group, kind, field string, i int) {
		gk := schema.GroupKind{Group: group, Kind: kind}
		known := slices.ContainsFunc(out, func(a AskedKind) bool { return a.Kind == gk })
		if kind != "" && kind != "*" && group != hubv1.GroupVersion.Group && !known {
			out = append(out, AskedKind{gk, fmt.Sprintf("%s[%d]", field, i)})
		}
	}
	for i, s := range spec.ResourceSelectors {
		if spec.HubExecution == hubv1.HubExecutionAllowed || !placement.HubWouldRun(schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}, hubRunsWorkloads) {
			add(s.APIGroup, s.Kind, "resourceSelectors", i)
		}
	}
	for i, r := range spec.References {
		add(r.APIGroup, r.Kind, "references", i)
	}
	return out
}

// NotFederated returns the message about kinds of a placement that the hub may not read. It has the command and the
// entries of the chart's value that grant them. resource returns the plural name of a kind's resource.
func NotFederated(missing []AskedKind, resource func(schema.GroupKind) string) string {
	var kinds, names []string
	resources := map[string][]string{}
	for _, a := range missing {
		name := resource(a.Kind)
		kinds = append(kinds, fmt.Sprintf("%s (%s)", a.Kind, a.Field))
		names = append(names, schema.GroupResource{Group: a.Kind.Group, Resource: name}.String())
		resources[a.Kind.Group] = append(resources[a.Kind.Group], name)
	}
	var entries []string
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		named := group
		if group == "" {
			named = `""`
		}
		entries = append(entries, fmt.Sprintf("{apiGroups: [%s], resources: [%s]}", named, strings.Join(resources[group], ", ")))
	}
	return fmt.Sprintf("the hub may not list and watch %s: run hansectl federate %s, or add to the value federatedKinds of the chart hanse-hub: %s; with status: true, the hub also writes their status",
		strings.Join(kinds, ", "), strings.Join(names, " "), strings.Join(entries, ", "))
}

// Rights are the rights of the hub, as far as a plan knows them. The zero value knows none.
type Rights struct {
	// Unreadable reports whether the hub is known to lack the right to list and watch a kind in a namespace. Without a
	// namespace, it reports whether the hub lacks the right in every namespace. It may be nil.
	Unreadable func(kind schema.GroupKind, namespace string) bool
	// Named reports whether the user asks about a placement, although the change does not change it. It may be nil.
	Named func(Object) bool
	// Resource returns the plural name of a kind's resource. It is required with Unreadable.
	Resource func(schema.GroupKind) string
}

// unread reports whether the hub makes no copy of an object, because it cannot read the object. The hub reads objects
// of bundles in another way. A binding shows that the hub could read the object before.
func (r Rights) unread(o decide.FleetObject) bool {
	id := o.Identity()
	return r.Unreadable != nil && o.Binding == nil && hubv1.BundleOf(o.Object) == nil && r.Unreadable(id.GroupKind(), id.Namespace)
}

// readable returns the fleet without the objects that the hub cannot read.
func (r Rights) readable(f decide.Fleet) decide.Fleet {
	f.Objects = slices.DeleteFunc(slices.Clone(f.Objects), r.unread)
	return f
}

// unfederated returns a problem for each placement with kinds that the hub may not read: of the placements in the
// change, of those that the user names, and of those that may select changed objects of such a kind. Without a change
// (all), it returns all.
func (r Rights) unfederated(before, after decide.Fleet, all bool) []Problem {
	if r.Unreadable == nil {
		return nil
	}
	var lost []hubv1.ObjectIdentity // changed objects of which the hub makes no copy
	for _, o := range after.Objects {
		same := func(old decide.FleetObject) bool { return old.Object == o.Object }
		if r.unread(o) && !slices.ContainsFunc(before.Objects, same) {
			lost = append(lost, o.Identity())
		}
	}
	runs := slices.ContainsFunc(after.Objects, func(o decide.FleetObject) bool { return o.HubRuns })
	var out []Problem
	for _, p := range after.Placements {
		missing := slices.DeleteFunc(AskedKinds(p.PlacementSpec(), runs), func(a AskedKind) bool { return !r.Unreadable(a.Kind, p.GetNamespace()) })
		concerned := all || !slices.Contains(before.Placements, p) || r.Named != nil && r.Named(ofPlacement(p)) || slices.ContainsFunc(lost, func(id hubv1.ObjectIdentity) bool {
			return (p.GetNamespace() == "" || p.GetNamespace() == id.Namespace) &&
				slices.ContainsFunc(missing, func(a AskedKind) bool { return a.Kind == id.GroupKind() })
		})
		if concerned && len(missing) > 0 && CheckPlacement(p) == nil {
			out = append(out, Problem{Object: ofPlacement(p), Reason: hubv1.ReasonNotFederated, Message: NotFederated(missing, r.Resource)})
		}
	}
	return out
}

// grantLack is a kind that a cluster does not let the hub write, in one namespace or in all.
type grantLack struct {
	kind               schema.GroupKind
	cluster, namespace string
}

// grantLacks returns the refusals that the rows of bindings report, with their messages. Only messages about a kind
// count: those about the rules of a role concern one object.
func grantLacks(objects []decide.FleetObject) map[grantLack]string {
	out := map[grantLack]string{}
	for _, o := range objects {
		if o.Binding == nil {
			continue
		}
		for _, row := range o.Binding.BindingStatus().Clusters {
			if row.Reason != hubv1.ReasonForbidden || !strings.HasPrefix(row.Message, "the hub may not ") {
				continue
			}
			lack := grantLack{kind: o.Identity().GroupKind(), cluster: row.Name}
			if strings.Contains(row.Message, " in namespace ") {
				lack.namespace = o.Identity().Namespace
			}
			out[lack] = row.Message
		}
	}
	return out
}

// ungranted adds a problem for each object whose planned copies the hub may not write on some clusters, by the refusals
// of other copies of its kind there.
func (m *maker) ungranted() {
	lacks := grantLacks(m.before.Objects)
	if len(lacks) == 0 {
		return
	}
	for o, clusters := range m.plan.writes() {
		kind := o.Identity().GroupKind()
		refused := map[string][]string{} // clusters, by messages
		for _, c := range clusters {
			for _, namespace := range slices.Compact([]string{"", o.Namespace}) {
				if message := lacks[grantLack{kind, c, namespace}]; message != "" && !slices.Contains(refused[message], c) {
					refused[message] = append(refused[message], c)
				}
			}
		}
		for _, message := range slices.Sorted(maps.Keys(refused)) {
			m.problem(Problem{Object: o, Clusters: refused[message], Reason: hubv1.ReasonForbidden, Message: message})
		}
	}
}

// Gained returns the clusters that get a new copy, by object.
func (p *Plan) Gained() iter.Seq2[Object, []string] {
	return func(yield func(Object, []string) bool) {
		for _, c := range p.Creations {
			if !yield(c.Object, c.Clusters) {
				return
			}
		}
		for _, move := range p.Moves {
			if len(move.To) > 0 && !yield(move.Object, move.To) {
				return
			}
		}
	}
}

// writes returns the clusters that get or change a copy, by object.
func (p *Plan) writes() iter.Seq2[Object, []string] {
	return func(yield func(Object, []string) bool) {
		for o, clusters := range p.Gained() {
			if !yield(o, clusters) {
				return
			}
		}
		for _, c := range p.Changes {
			var clusters []string
			for _, g := range c.Groups {
				clusters = append(clusters, g.Clusters...)
			}
			slices.Sort(clusters)
			if !yield(c.Object, clusters) {
				return
			}
		}
	}
}

// Forbids reports whether the plan has the problem that a cluster does not grant the kind of an object.
func (p *Plan) Forbids(o Object, cluster string) bool {
	return slices.ContainsFunc(p.Problems, func(known Problem) bool {
		return known.Object == o && known.Reason == hubv1.ReasonForbidden && slices.Contains(known.Clusters, cluster)
	})
}

// AddProblem adds a problem.
func (p *Plan) AddProblem(problem Problem) {
	p.Summary.Problems++
	p.Problems = append(p.Problems, problem)
}
