package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// Kinds is the output of the command kinds for all kinds.
type Kinds struct {
	Kinds []KindSummary `json:"kinds"`
}

// KindSummary describes a kind that has a binding, or that a placement selects by its name.
type KindSummary struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Objects is the number of objects of the kind that have a binding.
	Objects int `json:"objects"`
	// BundledObjects is the number of objects of the kind that have a binding and belong to a bundle.
	BundledObjects int `json:"bundledObjects"`
	// Copies is the number of copies that clusters shall hold. It counts the targets of bindings in the states Present and
	// Evicting.
	Copies int `json:"copies"`
	// Selected is true if a placement selects the kind by its name.
	Selected bool      `json:"selected"`
	Hub      KindOnHub `json:"hub"`
	// Serving is the number of clusters that serve the kind, whether or not they shall hold an object. Versions are the
	// versions that these clusters serve, the newest first.
	Serving  int            `json:"serving"`
	Versions []VersionCount `json:"versions"`
	Wanted   WantedClusters `json:"wanted"`
	Problems []KindProblem  `json:"problems"`
}

// Serving says whether an API server serves a kind.
type Serving string

const (
	// ServingYes means that the API server serves the kind at one version at least.
	ServingYes Serving = "Served"
	// ServingNo means that the API server does not serve the kind.
	ServingNo Serving = "NotServed"
	// ServingUnknown means that it is not known yet whether the API server serves the kind.
	ServingUnknown Serving = "Unknown"
)

// KindOnHub is a kind on the hub's API server.
type KindOnHub struct {
	Serving Serving `json:"serving"`
	// Version is the version at which the hub reads the objects. It is empty if the hub does not serve the kind.
	Version string `json:"version,omitempty"`
}

// VersionCount is the number of clusters that serve a version of a kind.
type VersionCount struct {
	Version  string `json:"version"`
	Clusters int    `json:"clusters"`
}

// WantedClusters counts the clusters that shall hold an object of the kind, and the clusters that would hold one if
// they served the kind.
type WantedClusters struct {
	// Count is the number of clusters that shall hold an object of the kind, or that would hold one if they served the
	// kind.
	Count int `json:"count"`
	// Serving is the number of clusters that shall hold an object of the kind and that serve the kind.
	Serving int `json:"serving"`
	// Unknown are the names of the clusters that shall hold an object of the kind but have not reported whether they serve
	// the kind.
	Unknown []string `json:"unknown"`
}

// KindProblem is the reason why copies of a kind are not created or changed on clusters, or never become Healthy.
type KindProblem struct {
	// Reason is KindNotServed if clusters do not serve the kind. It is VersionNotServed if they serve it, but not at a
	// needed version. It is NotOnHub if the hub does not serve the kind, and KindUnreadable if the hub serves the kind but
	// cannot read its objects. It is StatusNotUnderstood if no convention understands the status of any copy.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Clusters are the clusters on which copies of the kind are not created or changed, or are not understood. The list is
	// empty if the reason is NotOnHub or KindUnreadable.
	Clusters []string `json:"clusters,omitempty"`
}

// notOnHub is the reason of a KindProblem that concerns the hub: the hub does not serve the kind.
const notOnHub = "NotOnHub"

// KindClusters is the output of the command kinds for one kind: one row per cluster.
type KindClusters struct {
	KindSummary
	Clusters []KindCluster `json:"clusters"`
}

// KindCluster has the copies of a kind on one cluster.
type KindCluster struct {
	Cluster string  `json:"cluster"`
	Serving Serving `json:"serving"`
	// Versions are the versions at which the cluster serves the kind, its preferred version first.
	Versions []string `json:"versions,omitempty"`
	// Wanted is true if the cluster shall hold an object of the kind, or if it would hold an object but does not serve the
	// kind.
	Wanted bool `json:"wanted"`
	// Objects is the number of objects that the cluster shall hold. The other numbers count their copies. Applied counts
	// copies with the wanted content. Healthy counts copies with the health Healthy. Problems counts copies that are not
	// applied or Degraded.
	Objects  int `json:"objects"`
	Applied  int `json:"applied"`
	Healthy  int `json:"healthy"`
	Problems int `json:"problems"`
	// Live is true while the hub observes the cluster. Otherwise the row shows the state at LastObservedTime, if this time
	// is known.
	Live             bool         `json:"live"`
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// HubKinds are the kinds that the API server of the hub serves.
type HubKinds struct {
	Kinds map[schema.GroupKind]HubKind
	// Unread are the API groups whose kinds could not be read. All is true if no group could be read.
	Unread map[string]bool
	All    bool
}

// HubKind is a kind that the hub's API server serves.
type HubKind struct {
	Version    string // the preferred version
	Plural     string
	Namespaced bool
}

func (h HubKinds) of(kind schema.GroupKind) KindOnHub {
	switch found, ok := h.Kinds[kind]; {
	case ok:
		return KindOnHub{Serving: ServingYes, Version: found.Version}
	case h.All || h.Unread[kind.Group]:
		return KindOnHub{Serving: ServingUnknown}
	}
	return KindOnHub{Serving: ServingNo}
}

// Inventory collects the kinds in use from bindings and placements.
type Inventory struct {
	members []hubv1.MemberCluster
	hub     HubKinds
	kinds   map[schema.GroupKind]*kindUse
}

// kindUse has the data about a kind from bindings and placements.
type kindUse struct {
	objects, bundled int
	selected         bool
	// unreadable says why the hub cannot read the objects of the kind. It is empty if the hub can read them.
	unreadable string
	// versions are the API versions of the kind's objects in bundles.
	versions map[string]bool
	targets  map[string]*KindCluster
	// keptAway are clusters that placements select but that do not get an object, because they do not serve the kind.
	// selecting are clusters that placements select by name or label. Placements with an expression or a spread do not
	// count for selecting.
	keptAway, selecting map[string]bool
	understanding       understanding
}

// understanding counts the copies of a kind whose health no convention tells.
type understanding struct {
	unread   int
	clusters map[string]bool // clusters with such copies
	// read is true if at least one copy is Healthy.
	read bool
}

// add counts one copy by its row.
func (u *understanding) add(row *hubv1.ClusterRow) {
	switch {
	case row.Health == hubv1.HealthHealthy:
		u.read = true
	case row.Health == hubv1.HealthUnknown && row.Reason == health.ReasonStatusNotUnderstood:
		if u.unread++; u.clusters == nil {
			u.clusters = map[string]bool{}
		}
		u.clusters[row.Name] = true
	}
}

// never reports whether copies of the kind never become Healthy, because no convention understands their status.
func (u *understanding) never() bool { return u.unread > 0 && !u.read }

// message says how many copies are not understood, and what a user can do.
func (u *understanding) message() string {
	subject := "it never becomes Healthy, and holds waves and drains"
	if u.unread > 1 {
		subject = "they never become Healthy, and hold waves and drains"
	}
	return fmt.Sprintf("the status of %s is not understood: %s; set a healthExpression or the chart value statusVocabulary (try it with hansectl health)",
		counted(u.unread, "copy"), subject)
}

// NewInventory returns an Inventory without kinds.
func NewInventory(members []hubv1.MemberCluster, hub HubKinds) *Inventory {
	return &Inventory{members: members, hub: hub, kinds: map[schema.GroupKind]*kindUse{}}
}

func (i *Inventory) use(kind schema.GroupKind) *kindUse {
	u := i.kinds[kind]
	if u == nil {
		u = &kindUse{versions: map[string]bool{}, targets: map[string]*KindCluster{}, keptAway: map[string]bool{}, selecting: map[string]bool{}}
		i.kinds[kind] = u
	}
	return u
}

// AddPlacement adds the kinds that a placement names.
func (i *Inventory) AddPlacement(p hubv1.PlacementObject) {
	spec := p.PlacementSpec()
	scheduled := meta.FindStatusCondition(p.PlacementStatus().Conditions, hubv1.ConditionScheduled)
	for n, s := range spec.ResourceSelectors {
		if s.Kind == "*" || s.APIGroup == hubv1.GroupVersion.Group {
			continue
		}
		u := i.use(schema.GroupKind{Group: s.APIGroup, Kind: s.Kind})
		u.selected = true
		if scheduled != nil && scheduled.Reason == hubv1.ReasonKindUnreadable {
			u.unreadable = cmp.Or(u.unreadable, unreadableIn(scheduled.Message, n))
		}
		if spec.Spread != nil || spec.Clusters.Expression != "" {
			continue // its selection may depend on served kinds
		}
		for n := range i.members {
			if m := &i.members[n]; spec.Clusters.MaySelect(m) && m.Spec.AllowedNamespaces.From != hubv1.NamespacesFromNone {
				u.selecting[m.Name] = true
			}
		}
	}
}

// unreadableIn returns why the hub cannot read the kind of the resource selector with this index, from the message of
// the condition Scheduled with the reason KindUnreadable. Package hub/report/policies writes messages such as
// "resourceSelectors[0]: the hub cannot read Broken.example.com: ...". The result is empty if the message does not name
// the selector.
func unreadableIn(message string, selector int) string {
	for _, part := range strings.Split(message, "; ") {
		if why, found := strings.CutPrefix(part, fmt.Sprintf("resourceSelectors[%d]: ", selector)); found {
			return why
		}
	}
	return ""
}

// AddBinding adds the kind and the copies of one object.
func (i *Inventory) AddBinding(b hubv1.BindingObject) {
	kind := hubv1.ObjectOf(b).GroupKind()
	if kind.Group == hubv1.GroupVersion.Group {
		return
	}
	spec, status := b.BindingSpec(), b.BindingStatus()
	u := i.use(kind)
	u.objects++
	if spec.ObjectRef.Bundle != nil {
		u.bundled++
		u.versions[spec.ObjectRef.GroupVersionKind().Version] = true
	}
	rows := make(map[string]*hubv1.ClusterRow, len(status.Clusters))
	for n := range status.Clusters {
		rows[status.Clusters[n].Name] = &status.Clusters[n]
	}
	for _, t := range spec.Clusters {
		if t.State == hubv1.TargetAbsent {
			continue
		}
		c := u.targets[t.Name]
		if c == nil {
			c = &KindCluster{Cluster: t.Name}
			u.targets[t.Name] = c
		}
		c.add(rows[t.Name])
		if row := rows[t.Name]; row != nil {
			u.understanding.add(row)
		}
	}
	if unplaced := unplacedOf(b); unplaced != nil {
		for _, c := range unplaced.Clusters {
			if c.Reason == hubv1.ReasonKindNotServed || c.Reason == hubv1.ReasonVersionNotServed {
				u.keptAway[c.Cluster] = true
			}
		}
	}
}

// add adds one object to the counts of the cluster. row is the cluster's row in the binding. It is nil if the cluster
// has not reported the object yet.
func (c *KindCluster) add(row *hubv1.ClusterRow) {
	c.Objects++
	if row == nil {
		return
	}
	if row.Applied == metav1.ConditionTrue {
		c.Applied++
	}
	if row.Health == hubv1.HealthHealthy {
		c.Healthy++
	}
	if row.Applied == metav1.ConditionFalse || row.Health == hubv1.HealthDegraded {
		c.Problems++
	}
}

// wants returns the clusters that shall hold an object of the kind. If no object of the kind exists yet, it also
// returns the clusters that placements select.
func (u *kindUse) wants() map[string]bool {
	out := maps.Clone(u.keptAway)
	for name := range u.targets {
		out[name] = true
	}
	if u.objects == 0 {
		maps.Copy(out, u.selecting)
	}
	return out
}

func (u *kindUse) copies() int {
	n := 0
	for _, c := range u.targets {
		n += c.Objects
	}
	return n
}

// servingOf returns the versions of a kind on a cluster. A kind that is not in the cluster's status is unknown: the hub
// has not read it yet, or the list in the status is full.
func servingOf(m *hubv1.MemberCluster, kind schema.GroupKind) (Serving, []string) {
	for _, s := range m.Status.APIResources {
		switch {
		case s.Group != kind.Group || s.Kind != kind.Kind:
		case len(s.Versions) == 0:
			return ServingNo, nil
		default:
			return ServingYes, s.Versions
		}
	}
	return ServingUnknown, nil
}

// Kinds returns all kinds, sorted by group and name. If namespace is not empty, it leaves out cluster-scoped kinds.
func (i *Inventory) Kinds(namespace string) Kinds {
	out := Kinds{Kinds: []KindSummary{}}
	for _, kind := range i.sorted() {
		if found, ok := i.hub.Kinds[kind]; namespace != "" && ok && !found.Namespaced {
			continue
		}
		out.Kinds = append(out.Kinds, i.summary(kind))
	}
	return out
}

func (i *Inventory) sorted() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(i.kinds), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

func (i *Inventory) summary(kind schema.GroupKind) KindSummary {
	u := i.use(kind)
	s := KindSummary{
		Group: kind.Group, Kind: kind.Kind, Objects: u.objects, BundledObjects: u.bundled, Copies: u.copies(), Selected: u.selected, Hub: i.hub.of(kind),
		Versions: []VersionCount{}, Wanted: WantedClusters{Unknown: []string{}}, Problems: []KindProblem{},
	}
	wants, needed, counts, rows := u.wants(), u.needs(s.Hub), map[string]int{}, i.rows(kind)
	s.Wanted.Count = len(wants)
	lacking, older := []string{}, map[versionsServed][]string{}
	for _, c := range rows {
		if c.Serving == ServingYes {
			s.Serving++
		}
		for _, v := range c.Versions {
			counts[v]++
		}
		switch {
		case !wants[c.Cluster]:
		case c.Serving == ServingUnknown:
			s.Wanted.Unknown = append(s.Wanted.Unknown, c.Cluster)
		case c.Serving == ServingNo:
			lacking = append(lacking, c.Cluster)
		default:
			s.Wanted.Serving++
			if missing := missingVersions(needed, c.Versions); len(missing) > 0 {
				serves := versionsServed{only: strings.Join(c.Versions, ", "), not: strings.Join(missing, ", ")}
				older[serves] = append(older[serves], c.Cluster)
			}
		}
	}
	for _, v := range slices.SortedFunc(maps.Keys(counts), newestFirst) {
		s.Versions = append(s.Versions, VersionCount{v, counts[v]})
	}
	switch own := u.objects - u.bundled; {
	case s.Hub.Serving != ServingNo:
	case u.selected:
		s.add(notOnHub, "not on the hub, and a placement selects it", nil)
	case own > 0:
		s.add(notOnHub, "not on the hub, and bindings place "+counted(own, "object")+" of the hub", nil)
	}
	if u.unreadable != "" {
		s.add(hubv1.ReasonKindUnreadable, u.unreadable, nil)
	}
	if len(lacking) > 0 {
		s.add(hubv1.ReasonKindNotServed, fmt.Sprintf("not served by %s: %s", counted(len(lacking), "cluster"), list(lacking)), lacking)
	}
	for _, serves := range slices.SortedFunc(maps.Keys(older), func(a, b versionsServed) int { return cmp.Compare(a.only, b.only) }) {
		verb, they := "do", "they serve"
		if len(older[serves]) == 1 {
			verb, they = "does", "it serves"
		}
		message := fmt.Sprintf("%s %s not serve %s, which the objects need; %s only %s: %s: update the CustomResourceDefinition or the cluster",
			counted(len(older[serves]), "cluster"), verb, serves.not, they, serves.only, list(older[serves]))
		s.add(hubv1.ReasonVersionNotServed, message, older[serves])
	}
	if u.understanding.never() {
		s.add(health.ReasonStatusNotUnderstood, u.understanding.message(), slices.Sorted(maps.Keys(u.understanding.clusters)))
	}
	return s
}

// versionsServed are the only versions of a kind that a cluster serves, and the needed versions that it does not serve.
type versionsServed struct{ only, not string }

// missingVersions returns the versions that are not among the others, without repetitions.
func missingVersions(versions, others []string) []string {
	var out []string
	for _, v := range slices.SortedFunc(slices.Values(versions), newestFirst) {
		if !slices.Contains(others, v) && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (s *KindSummary) add(reason, message string, clusters []string) {
	s.Problems = append(s.Problems, KindProblem{Reason: reason, Message: message, Clusters: clusters})
}

// needs returns the versions of the kind that clusters must serve. These are the hub's version for objects of the hub,
// and the versions of the objects of bundles.
func (u *kindUse) needs(hub KindOnHub) []string {
	needed := slices.Collect(maps.Keys(u.versions))
	if hub.Version != "" && (u.objects > u.bundled || u.objects == 0) {
		needed = append(needed, hub.Version)
	}
	return needed
}

func newestFirst(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }

// rows returns one row for each cluster, sorted by name. It includes all members, and clusters that bindings name but
// that have no MemberCluster.
func (i *Inventory) rows(kind schema.GroupKind) []KindCluster {
	var out []KindCluster
	u := i.use(kind)
	wants, known := u.wants(), map[string]bool{}
	for n := range i.members {
		m := &i.members[n]
		known[m.Name] = true
		c := KindCluster{Cluster: m.Name}
		if at := u.targets[m.Name]; at != nil {
			c = *at
		}
		c.Serving, c.Versions = servingOf(m, kind)
		c.LastObservedTime = m.Status.LastObservedTime
		out = append(out, c)
	}
	for name := range wants {
		if known[name] {
			continue
		}
		c := KindCluster{Cluster: name}
		if at := u.targets[name]; at != nil {
			c = *at
		}
		c.Serving = ServingUnknown
		out = append(out, c)
	}
	for n := range out {
		out[n].Wanted = wants[out[n].Cluster]
	}
	slices.SortFunc(out, func(a, b KindCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// Of returns the rows of one kind by cluster. The kind need not be in use. silence is nil while a hub runs.
func (i *Inventory) Of(kind schema.GroupKind, silence *Silence, now time.Time) KindClusters {
	out := KindClusters{KindSummary: i.summary(kind), Clusters: i.rows(kind)}
	live := map[string]bool{}
	for n := range i.members {
		m := &i.members[n]
		live[m.Name] = silence == nil && m.IsObserved(now)
	}
	for n := range out.Clusters {
		out.Clusters[n].Live = live[out.Clusters[n].Cluster]
	}
	return out
}

// ErrNoSuchKind means that no kind in use has the name.
var ErrNoSuchKind = errors.New("no binding or placement has this kind")

// Find returns the kind in use that has the given name. The name is the kind or its plural, with or without the group.
func (i *Inventory) Find(name string) (schema.GroupKind, error) {
	var found []schema.GroupKind
	var names []string
	for _, kind := range i.sorted() {
		guessed, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		plural := cmp.Or(i.hub.Kinds[kind].Plural, guessed.Resource)
		for _, word := range []string{kind.Kind, plural} {
			if strings.EqualFold(name, word) || strings.EqualFold(name, schema.GroupKind{Group: kind.Group, Kind: word}.String()) {
				found, names = append(found, kind), append(names, kind.String())
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return schema.GroupKind{}, ErrNoSuchKind
	case 1:
		return found[0], nil
	}
	return schema.GroupKind{}, fmt.Errorf("several groups have this kind, name one: %s", strings.Join(names, ", "))
}

// WithProblems returns the kinds that have a problem.
func (k Kinds) WithProblems() Kinds {
	out := Kinds{Kinds: []KindSummary{}}
	for _, s := range k.Kinds {
		if len(s.Problems) > 0 {
			out.Kinds = append(out.Kinds, s)
		}
	}
	return out
}
