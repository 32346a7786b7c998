package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Operators is the output of the command operators for all operators.
type Operators struct {
	Operators []OperatorOnClusters `json:"operators"`
	// WithoutOperator are custom kinds that have objects on clusters, and that no FederatedOperator provides.
	WithoutOperator []KindWithoutOperator `json:"kindsWithoutOperator"`
	// OnOtherClusters are kinds that operators provide, and that also have objects on clusters without such an operator.
	OnOtherClusters []KindOnOtherClusters `json:"kindsOnOtherClusters"`
}

// KindWithoutOperator is a custom kind that no FederatedOperator provides.
type KindWithoutOperator struct {
	// Kind is Kind.group.
	Kind string `json:"kind"`
	// Objects is the number of objects of the kind that clusters hold, or shall hold.
	Objects int `json:"objects"`
}

// KindOnOtherClusters is a kind that FederatedOperators provide, with clusters on which no such operator is placed.
type KindOnOtherClusters struct {
	// Kind is Kind.group.
	Kind string `json:"kind"`
	// Clusters are the clusters that hold objects of the kind, or shall hold them, and on which no operator that provides
	// the kind is placed.
	Clusters []string `json:"clusters"`
}

// OperatorSummary summarises a FederatedOperator.
type OperatorSummary struct {
	Name string `json:"name"`
	// Chart is the chart from which the hub has rendered the stored objects. It is nil if the operator has manifests
	// instead of a chart, or if the hub has not stored objects yet.
	Chart *hubv1.RenderedChart `json:"chart,omitempty"`
	// Available is a version of the chart in its repository that is newer than the version of Chart. It is empty if the
	// hub knows none. Newest is the result of the hub's last check, or nil if the hub has not asked the repository.
	Available string             `json:"available,omitempty"`
	Newest    *hubv1.NewestChart `json:"newest,omitempty"`
	// Manifests is true if the operator has manifests instead of a chart.
	Manifests bool `json:"manifests"`
	// Clusters is the number of clusters on which the operator is placed. Ready is the number of these on which it is
	// ready.
	Clusters int32 `json:"clusters"`
	Ready    int32 `json:"ready"`
	// Stored says whether the hub has stored the operator's objects of the newest generation. It is True, False or
	// Unknown.
	Stored metav1.ConditionStatus `json:"stored"`
	// Objects is the number of the operator's objects that the hub has stored.
	Objects int32 `json:"objects"`
	// Provides are the kinds that the operator defines, as Kind.group.
	Provides []string    `json:"provides"`
	Created  metav1.Time `json:"created"`
}

// SummaryOfOperator returns the summary of an operator.
func SummaryOfOperator(o *hubv1.FederatedOperator) OperatorSummary {
	s := OperatorSummary{
		Name: o.Name, Chart: o.Status.Chart, Manifests: o.Spec.Chart == nil, Clusters: o.Status.Total, Ready: o.Status.Ready,
		Stored: metav1.ConditionUnknown, Objects: o.Status.Objects, Provides: append([]string{}, o.Status.Provides...), Created: o.CreationTimestamp,
	}
	if s.Newest = o.Status.Newest; s.Newest != nil && s.Chart != nil && operator.IsNewer(s.Newest.Version, s.Chart.Version) {
		s.Available = s.Newest.Version
	}
	if c := meta.FindStatusCondition(o.Status.Conditions, hubv1.ConditionStored); c != nil && c.ObservedGeneration == o.Generation {
		s.Stored = c.Status
	}
	return s
}

// OperatorGatherer collects operators, and the kinds in use that no operator provides.
type OperatorGatherer struct {
	operators []*OperatorObjects
	used      map[schema.GroupKind]*usage
}

// usage has the number of objects of one custom kind, and the clusters of these objects.
type usage struct {
	objects  int
	clusters sets.Set[string] // clusters that hold the objects, or shall hold them
}

// NewOperatorGatherer returns a gatherer that has no bindings yet. observed reports whether the hub observes a cluster,
// see Observed.
func NewOperatorGatherer(operators []hubv1.FederatedOperator, observed func(cluster string) bool) *OperatorGatherer {
	g := &OperatorGatherer{used: map[schema.GroupKind]*usage{}}
	for i := range operators {
		g.operators = append(g.operators, NewOperatorObjects(&operators[i], observed))
	}
	slices.SortFunc(g.operators, func(a, b *OperatorObjects) int { return cmp.Compare(a.operator.Name, b.operator.Name) })
	return g
}

// AddBinding adds the binding of an object. If the object belongs to an operator, it counts for this operator. If its
// kind is custom and the object is on clusters, the kind is in use.
func (g *OperatorGatherer) AddBinding(b hubv1.BindingObject) {
	for _, o := range g.operators {
		o.AddBinding(b)
	}
	kind := hubv1.ObjectOf(b).GroupKind()
	if len(b.BindingSpec().Clusters) == 0 || !isCustom(kind) {
		return
	}
	u := g.used[kind]
	if u == nil {
		u = &usage{clusters: sets.New[string]()}
		g.used[kind] = u
	}
	u.objects++
	for _, t := range b.BindingSpec().Clusters {
		u.clusters.Insert(t.Name)
	}
}

// isCustom reports whether a kind belongs neither to Kubernetes nor to Hanse.
func isCustom(kind schema.GroupKind) bool {
	return kind.Group != hubv1.GroupVersion.Group && !clientgoscheme.Scheme.IsGroupRegistered(kind.Group) && !Extends(kind)
}

// Operators returns the operators, sorted by name, and the kinds, sorted by group and name.
func (g *OperatorGatherer) Operators() Operators {
	out := Operators{Operators: []OperatorOnClusters{}, WithoutOperator: []KindWithoutOperator{}, OnOtherClusters: []KindOnOtherClusters{}}
	providers := map[string]sets.Set[string]{} // clusters with an operator that provides the kind
	for _, o := range g.operators {
		is := o.asTheHubCounts()
		out.Operators = append(out.Operators, is)
		for _, kind := range is.Provides {
			if providers[kind] == nil {
				providers[kind] = sets.New[string]()
			}
			for _, c := range is.OnClusters {
				providers[kind].Insert(c.Cluster)
			}
		}
	}
	kinds := slices.SortedFunc(maps.Keys(g.used), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	for _, kind := range kinds {
		u := g.used[kind]
		on, provided := providers[kind.String()]
		if !provided {
			out.WithoutOperator = append(out.WithoutOperator, KindWithoutOperator{Kind: kind.String(), Objects: u.objects})
		} else if others := u.clusters.Difference(on); len(others) > 0 {
			out.OnOtherClusters = append(out.OnOtherClusters, KindOnOtherClusters{Kind: kind.String(), Clusters: sets.List(others)})
		}
	}
	return out
}

// Write writes a table with one row for each operator, and the number of kinds that the operator defines.
func (o Operators) Write(w io.Writer, now time.Time) {
	o.write(w, now, func(s OperatorSummary) string { return strconv.Itoa(len(s.Provides)) })
	o.writeNotes(w)
}

// WriteWide writes the table with the names of the kinds, and a table of operators by cluster.
func (o Operators) WriteWide(w io.Writer, now time.Time) {
	o.write(w, now, func(s OperatorSummary) string { return kindNames(s.Provides) })
	o.writeMatrix(w)
	o.writeNotes(w)
}

func (o Operators) write(w io.Writer, now time.Time, kinds func(OperatorSummary) string) {
	if len(o.Operators) == 0 {
		fmt.Fprintln(w, "No FederatedOperator")
	} else {
		var rows [][]string
		for _, s := range o.Operators {
			rows = append(rows, []string{s.Name, s.source(), s.version(), s.clusters(), string(s.Stored), kinds(s.OperatorSummary), age(s.Created, now)})
		}
		table(w, []string{"NAME", "CHART", "VERSION", "CLUSTERS", "STORED", "KINDS", "AGE"}, rows)
	}
}

// writeMatrix writes a row for each cluster and a column for each operator.
func (o Operators) writeMatrix(w io.Writer) {
	header := []string{"CLUSTER"}
	cells := map[string][]string{}
	for i, s := range o.Operators {
		header = append(header, s.Name)
		for _, c := range s.OnClusters {
			if cells[c.Cluster] == nil {
				cells[c.Cluster] = make([]string, len(o.Operators))
			}
			cells[c.Cluster][i] = c.cell()
		}
	}
	if len(cells) == 0 {
		return
	}
	var rows [][]string
	for _, cluster := range slices.Sorted(maps.Keys(cells)) {
		rows = append(rows, append([]string{cluster}, cells[cluster]...))
	}
	fmt.Fprintln(w)
	table(w, header, rows)
}

// maxClusters is the maximum number of clusters that a note names for each kind.
const maxClusters = 5

func (o Operators) writeNotes(w io.Writer) {
	for _, s := range o.Operators {
		if behind := s.behind(); len(behind) > 0 {
			line(w, "Note", fmt.Sprintf("%s is behind on %s: %s", s.Name, counted(len(behind), "cluster"), firstClusters(behind)))
		}
	}
	for _, s := range o.Operators {
		if fails := s.CheckFails(); fails != "" {
			line(w, "Note", s.Name+": "+fails)
		}
	}
	var without, elsewhere []string
	for _, k := range o.WithoutOperator {
		without = append(without, fmt.Sprintf("%s (%s)", k.Kind, counted(k.Objects, "object")))
	}
	for _, k := range o.OnOtherClusters {
		elsewhere = append(elsewhere, k.Kind+" on "+firstClusters(k.Clusters))
	}
	if len(without) > 0 {
		line(w, "Note", "kinds in use without a FederatedOperator: "+strings.Join(without, ", "))
	}
	if len(elsewhere) > 0 {
		line(w, "Note", "kinds in use on clusters that their operator is not placed on: "+strings.Join(elsewhere, "; "))
	}
}

// kindNames returns kinds, such as Rotor.example.com, as text: the first ones of each group, as in "Prometheus, Probe
// and 8 more (monitoring.coreos.com)".
func kindNames(kinds []string) string {
	const maxKinds = 2
	byGroup := map[string][]string{}
	for _, kind := range kinds {
		name, group, _ := strings.Cut(kind, ".")
		byGroup[group] = append(byGroup[group], name)
	}
	var out []string
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		names := byGroup[group]
		text := strings.Join(names[:min(len(names), maxKinds)], ", ")
		if more := len(names) - maxKinds; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, text+" ("+group+")")
	}
	if more := len(out) - maxKinds; more > 0 {
		out = append(out[:maxKinds], fmt.Sprintf("and kinds of %s more", counted(more, "group")))
	}
	return strings.Join(out, ", ")
}

// firstClusters returns up to maxClusters of the names as text, and the number of the others.
func firstClusters(names []string) string {
	text := strings.Join(names[:min(len(names), maxClusters)], ", ")
	if more := len(names) - maxClusters; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// CheckFails says since when, and why, the hub cannot find out the newest version of the chart. It returns an empty
// text if it can, or if it has not asked.
func (s OperatorSummary) CheckFails() string {
	if s.Newest == nil || s.Newest.Error == "" {
		return ""
	}
	return fmt.Sprintf("checks for newer versions fail since %s: %s", s.Newest.Since.UTC().Format(time.RFC3339), s.Newest.Error)
}

// source returns the name and version of the chart as text, and a newer version in its repository, or "manifests". It
// returns an empty text if the hub has not stored objects of a chart yet.
func (s OperatorSummary) source() string {
	switch {
	case s.Chart != nil && s.Available != "":
		return fmt.Sprintf("%s-%s (%s is available)", s.Chart.Name, s.Chart.Version, s.Available)
	case s.Chart != nil:
		return s.Chart.Name + "-" + s.Chart.Version
	case s.Manifests:
		return "manifests"
	}
	return ""
}

// version returns the version of the operator. It returns an empty text if the chart does not tell this version.
func (s OperatorSummary) version() string {
	if s.Chart == nil {
		return ""
	}
	return s.Chart.AppVersion
}

func (s OperatorSummary) clusters() string { return fmt.Sprintf("%d/%d", s.Ready, s.Clusters) }

// OperatorOnClusters is the output of the command operators for one operator: one row per cluster.
type OperatorOnClusters struct {
	OperatorSummary
	Conditions []metav1.Condition `json:"conditions"`
	// OnClusters are the clusters on which the operator is placed, sorted by name.
	OnClusters []OperatorOnCluster `json:"onClusters"`
	// Rollout is the rollout of the operator as a whole. It is absent if the operator is not rolled out as a whole. Change
	// is what the newest revision adds, changes and removes. It is absent if the user may not read the lists of objects.
	Rollout *BundleRollout `json:"rollout,omitempty"`
	Change  *SetChange     `json:"change,omitempty"`
	// Undecided says why Rollout is not about the newest content of the operator.
	Undecided string `json:"undecided,omitempty"`
}

// behind returns the names of the clusters that are behind.
func (o OperatorOnClusters) behind() []string {
	var out []string
	for _, c := range o.OnClusters {
		if c.Behind {
			out = append(out, c.Cluster)
		}
	}
	return out
}

// OperatorOnCluster is an operator on one cluster.
type OperatorOnCluster struct {
	Cluster string `json:"cluster"`
	// Version is the version of the copies of the operator's workloads. If the copies differ, it has all versions,
	// separated by commas. It is empty if no workload has a version.
	Version string `json:"version,omitempty"`
	// Behind is true if the cluster has a copy that is older than the newest state of its object. Other clusters may have
	// newer copies, or a rollout has not reached the cluster, or has returned to an older revision. If no cluster has the
	// newest state yet, and there is no rollout, Behind is false.
	Behind bool `json:"behind,omitempty"`
	Ready  bool `json:"ready"`
	// Away is true while the hub does not observe the cluster. The state of the operator on the cluster is then the last
	// known state.
	Away bool `json:"away,omitempty"`
	// Objects is the number of the operator's objects that the cluster shall hold. Applied is the number of their copies
	// that have the wanted content.
	Objects int `json:"objects"`
	Applied int `json:"applied"`
	// Resources is the number of objects of the operator's kinds that the cluster holds, or shall hold.
	Resources int `json:"resources"`
	// WaitsFor names the objects for which the operator waits. It is empty if the operator is ready.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Set is the revision of the operator on the cluster. It is absent if the operator is not rolled out as a whole.
	Set *SetOnCluster `json:"set,omitempty"`
}

// cell describes the operator on the cluster in a few words.
func (c OperatorOnCluster) cell() string {
	text := c.VersionText()
	switch {
	case !c.Ready:
		text = strings.TrimSpace(text + " not ready")
	case text == "":
		text = "ready"
	}
	return text + c.staleMark()
}

// VersionText returns the version, and whether the cluster is behind.
func (c OperatorOnCluster) VersionText() string {
	if c.Behind {
		return strings.TrimSpace(c.Version + " (behind)")
	}
	return c.Version
}

// staleMark returns "?" for a row that may be out of date, and otherwise an empty text.
func (c OperatorOnCluster) staleMark() string {
	if c.Away {
		return "?"
	}
	return ""
}

// OperatorObjects collects the objects of an operator, and counts the objects of the kinds that the operator provides.
type OperatorObjects struct {
	operator  *hubv1.FederatedOperator
	observed  func(cluster string) bool
	objects   []operator.Stored
	copies    map[string]*OperatorOnCluster
	versions  map[string]sets.Set[string] // versions of the copies, by cluster
	resources map[string]int
	set       *SetInput // nil if the operator is not rolled out as a whole
}

// NewOperatorObjects returns an OperatorObjects that has no bindings yet. observed reports whether the hub observes a
// cluster, see Observed.
func NewOperatorObjects(o *hubv1.FederatedOperator, observed func(cluster string) bool) *OperatorObjects {
	return &OperatorObjects{
		operator: o, observed: observed, copies: map[string]*OperatorOnCluster{}, versions: map[string]sets.Set[string]{}, resources: map[string]int{},
	}
}

// AddBinding adds the binding of an object of the operator, or of an object whose kind the operator provides. It
// ignores other bindings.
func (s *OperatorObjects) AddBinding(b hubv1.BindingObject) {
	id := hubv1.ObjectOf(b)
	if slices.Contains(s.operator.Status.Provides, id.GroupKind().String()) {
		for _, t := range b.BindingSpec().Clusters {
			s.resources[t.Name]++
		}
	}
	if ref := b.BindingSpec().ObjectRef.Bundle; ref == nil || *ref != hubv1.ReferenceTo(s.operator) {
		return
	}
	b = b.DeepCopyObject().(hubv1.BindingObject)
	s.objects = append(s.objects, operator.Stored{ObjectIdentity: id, Binding: b, NotOn: operator.NotInRevision(b)})
	rows := map[string]hubv1.ClusterRow{}
	for _, row := range b.BindingStatus().Clusters {
		rows[row.Name] = row
	}
	newest := NewestGeneration(b)
	for _, t := range b.BindingSpec().Clusters {
		if t.State == hubv1.TargetAbsent {
			continue
		}
		c := s.copies[t.Name]
		if c == nil {
			c = &OperatorOnCluster{Away: !s.observed(t.Name)}
			s.copies[t.Name], s.versions[t.Name] = c, sets.New[string]()
		}
		if version := rows[t.Name].Version; version != "" {
			s.versions[t.Name].Insert(version)
		}
		c.Behind = c.Behind || isBehind(rows[t.Name], b.BindingSpec().Rollout, newest)
		c.Away = c.Away || rows[t.Name].LastObservedTime != nil
		c.Objects++
		if rows[t.Name].Applied == metav1.ConditionTrue {
			c.Applied++
		}
	}
}

// isBehind reports whether a copy is older than the newest state of its object. newest is the newest generation of the
// object. rollout is nil if the object has no rollout.
func isBehind(row hubv1.ClusterRow, rollout *hubv1.BindingRollout, newest int64) bool {
	switch {
	case row.Generation == 0: // there is no copy yet
		return false
	case rollout != nil && row.Revision != 0:
		return row.Revision != rollout.Newest
	}
	return row.Generation < newest
}

// Bindings returns the bindings of the operator's objects.
func (s *OperatorObjects) Bindings() []hubv1.BindingObject {
	var out []hubv1.BindingObject
	for _, o := range s.objects {
		out = append(out, o.Binding)
	}
	return out
}

// AddUnplaced adds an object of the operator that has no binding.
func (s *OperatorObjects) AddUnplaced(id hubv1.ObjectIdentity) {
	s.objects = append(s.objects, operator.Stored{ObjectIdentity: id})
}

// AddSet adds the rollout of the operator as a whole. lists has the lists of its revisions, or is nil if they cannot be
// read.
func (s *OperatorObjects) AddSet(spec *hubv1.SetRolloutSpec, lists map[string]decide.SetList) {
	s.set = &SetInput{Spec: spec, Lists: lists, Bundle: s.operator, Bindings: s.Bindings()}
}

// OnClusters returns the operator with its clusters.
func (s *OperatorObjects) OnClusters() OperatorOnClusters {
	out := OperatorOnClusters{
		OperatorSummary: SummaryOfOperator(s.operator), Conditions: append([]metav1.Condition{}, s.operator.Status.Conditions...), OnClusters: []OperatorOnCluster{},
	}
	for _, at := range operator.Clusters(s.objects) {
		c := *s.copies[at.Name]
		c.Cluster, c.Ready, c.WaitsFor, c.Resources = at.Name, at.WaitsFor == "", at.WaitsFor, s.resources[at.Name]
		c.Version = strings.Join(sets.List(s.versions[at.Name]), ",")
		if s.set != nil {
			c.Set = setOnCluster(*s.set, c.Cluster, c.Away)
		}
		out.OnClusters = append(out.OnClusters, c)
	}
	if s.set != nil {
		out.Rollout, out.Change = RolloutOfBundle(s.set.Spec.Bundle, s.set.Spec, nil), changeOfSet(*s.set)
		out.Undecided = s.set.waitsForHub()
	}
	return out
}

// asTheHubCounts returns the result of OnClusters, except that clusters in status.notReady of the operator are not
// ready. The hub may know that a cluster is not ready because objects of the operator have no binding. These objects
// are not visible here.
func (s *OperatorObjects) asTheHubCounts() OperatorOnClusters {
	out := s.OnClusters()
	for i := range out.OnClusters {
		c := &out.OnClusters[i]
		for _, not := range s.operator.Status.NotReady {
			if c.Ready && not.Name == c.Cluster {
				c.Ready, c.WaitsFor = false, not.Message
			}
		}
	}
	return out
}

// Write writes a line about the operator, its conditions that are not True, and a row for each cluster.
func (o OperatorOnClusters) Write(w io.Writer, now time.Time) {
	o.write(w, now, counted(len(o.Provides), "kind"))
}

// WriteWide writes the same as Write, and the names of the kinds.
func (o OperatorOnClusters) WriteWide(w io.Writer, now time.Time) {
	o.write(w, now, "kinds "+printable(kindNames(o.Provides)))
}

func (o OperatorOnClusters) write(w io.Writer, now time.Time, kinds string) {
	fmt.Fprintln(w, strings.Join([]string{
		printable(o.Name), "chart " + printable(o.source()), "version " + printable(o.version()), "ready " + o.clusters(), kinds, "age " + printable(age(o.Created, now)),
	}, gap))
	if o.Chart != nil && len(o.Chart.Lookups) > 0 {
		line(w, "Note", "templates that call lookup, which finds no object on the hub: "+strings.Join(o.Chart.Lookups, ", "))
	}
	if o.Stored == metav1.ConditionUnknown {
		line(w, "Note", "the hub has not stored the newest generation yet")
	}
	if fails := o.CheckFails(); fails != "" {
		line(w, "Note", fails)
	}
	for _, c := range o.Conditions {
		if c.Status != metav1.ConditionTrue {
			fmt.Fprintln(w, printable(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, why(c.Reason, c.Message))))
		}
	}
	if len(o.OnClusters) == 0 {
		fmt.Fprintln(w, "No cluster: no ClusterPlacement has placed a workload or a definition of the operator")
		return
	}
	if o.Rollout != nil {
		line(w, "Rollout", inShort(&o.Rollout.BindingRollout)+", for "+age(o.Rollout.Since, now))
		line(w, "Waits", o.Undecided)
	}
	if o.Change != nil {
		o.Change.write(w)
	}
	header := []string{"CLUSTER", "VERSION"}
	if o.Rollout != nil {
		header = append(header, "REVISION", "PHASE", "MISSING")
	}
	var rows [][]string
	for _, c := range o.OnClusters {
		ready := string(metav1.ConditionFalse)
		if c.Ready {
			ready = string(metav1.ConditionTrue)
		}
		row := []string{c.Cluster, c.VersionText()}
		if o.Rollout != nil {
			row = append(row, c.Set.cells()...)
		}
		rows = append(rows, append(row, ready+c.staleMark(), fmt.Sprintf("%d/%d", c.Applied, c.Objects), strconv.Itoa(c.Resources), c.WaitsFor))
	}
	table(w, append(header, "READY", "OBJECTS", "RESOURCES", "WAITS FOR"), rows)
}

// Extends reports whether a kind extends API servers, as CustomResourceDefinition and APIService do. Every API server
// has these kinds, but they are not registered in client-go's scheme.
func Extends(gk schema.GroupKind) bool {
	return gk.Group == "apiextensions.k8s.io" || gk.Group == "apiregistration.k8s.io"
}
