package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// dashboards returns the dashboards by the name of their file.
func dashboards() map[string]*dashboard.DashboardBuilder {
	return map[string]*dashboard.DashboardBuilder{"fleet": fleet(), "cluster": cluster(), "kinds": kinds(), "hub": hub()}
}

func fleet() *dashboard.DashboardBuilder {
	return newDashboard("fleet", "Hanse: fleet", "Whether the clusters have what the hub wants, and what holds changes.").
		WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(number("Copies", "Copies that the hub wants on clusters.", units.Short, query{"sum(hanse_copies)", ""})).
		WithPanel(number("In sync", "The share of copies that have their wanted state or are held.", units.PercentUnit,
			query{"1 - (sum(hanse_copies_out_of_sync) + sum(hanse_copies_unknown)) / (sum(hanse_copies) > 0)", ""})).
		WithPanel(number("Degraded", "Copies that do not work on their cluster.", units.Short, query{"sum(hanse_copies_failing)", ""})).
		WithPanel(number("Unknown", "Copies whose state the hub does not know.", units.Short, query{"sum(hanse_copies_unknown)", ""})).
		WithPanel(number("Held", "Copies that a wave, window, approval, guard, pause or suspension holds.", units.Short,
			query{"sum(hanse_copies_held)", ""})).
		WithPanel(number("Clusters not ready", "Clusters that do not answer the hub.", units.Short,
			query{"sum(1 - max by (cluster) (hanse_member_ready))", ""})).
		WithRow(dashboard.NewRowBuilder("Clusters")).
		WithPanel(graph("Ready", "1 if the cluster answers the hub.", units.Short, query{"max by (cluster) (hanse_member_ready)", "{{cluster}}"})).
		WithPanel(graph("Copies out of sync", "Copies whose wanted state is not on the cluster and that nothing holds.", units.Short,
			query{"sum by (cluster) (hanse_copies_out_of_sync)", "{{cluster}}"})).
		WithPanel(graph("Degraded copies", "Copies that do not work on their cluster.", units.Short,
			query{"sum by (cluster) (hanse_copies_failing)", "{{cluster}}"})).
		WithPanel(graph("Reasons", "Copies by the reason of their row, without Applied.", units.Short,
			query{"sum by (reason) (hanse_cluster_copies_by_reason) or vector(0)", "{{reason}}"})).
		WithRow(dashboard.NewRowBuilder("Changes")).
		WithPanel(graph("Time until a copy is applied", "99 of 100 changes are on the cluster within this time.", units.Seconds,
			query{quantile("0.99", "cluster", "hanse_cluster_apply_duration_seconds"), "{{cluster}}"})).
		WithPanel(graph("Rollouts", "Rollouts by state.", units.Short, query{"sum by (state) (hanse_rollouts)", "{{state}}"})).
		WithPanel(graph("Held copies", "Copies that keep an older state, by the cause.", units.Short,
			query{"sum by (hold) (hanse_copies_held)", "{{hold}}"})).
		WithPanel(graph("Age of the oldest hold", "How long the oldest hold lasts.", units.Seconds,
			query{"(time() - min by (hold) (hanse_copies_held_oldest_timestamp_seconds)) or vector(0)", "{{hold}}"})).
		WithPanel(graph("Removals that wait", "Removals that a user has to confirm.", units.Short, query{"sum(hanse_removals_held)", "removals"})).
		WithPanel(graph("Placements with the lowest share in sync", "The 20 placements with the lowest share of copies in sync.", units.PercentUnit,
			query{"bottomk(20, sum by (namespace, placement) (hanse_placement_copies_in_sync) / (sum by (namespace, placement) (hanse_placement_copies) > 0))",
				"{{namespace}}/{{placement}}"}))
}

func cluster() *dashboard.DashboardBuilder {
	return newDashboard("cluster", "Hanse: cluster", "One cluster, or several side by side.").
		WithVariable(choice("cluster", "hanse_member_ready")).
		WithRow(dashboard.NewRowBuilder("Link")).
		WithPanel(graph("Ready", "1 if the cluster answers the hub.", units.Short, query{`max by (cluster) (hanse_member_ready{cluster=~"$cluster"})`, "{{cluster}}"})).
		WithPanel(graph("New links", "Links that the hub made anew, in an hour.", units.Short,
			query{`sum by (cluster) (increase(hanse_member_reconnects_total{cluster=~"$cluster"}[1h]))`, "{{cluster}}"})).
		WithPanel(graph("Credentials", "Time until the credentials of the hub expire.", units.Seconds,
			query{`min by (cluster) (hanse_member_credentials_expiry_timestamp_seconds{cluster=~"$cluster"}) - time()`, "{{cluster}}"})).
		WithPanel(graph("Watched kinds", "Kinds that the hub watches on the cluster.", units.Short,
			query{`max by (cluster) (hanse_member_watches{cluster=~"$cluster"})`, "{{cluster}}"})).
		WithRow(dashboard.NewRowBuilder("Copies")).
		WithPanel(graph("Copies", "Copies that the hub wants on the cluster.", units.Short,
			query{`sum by (cluster) (hanse_copies{cluster=~"$cluster"})`, "{{cluster}}"})).
		WithPanel(graph("Out of sync", "Copies whose wanted state is not on the cluster and that nothing holds.", units.Short,
			query{`sum by (cluster, kind) (hanse_copies_out_of_sync{cluster=~"$cluster"})`, "{{cluster}} {{kind}}"})).
		WithPanel(graph("Degraded", "Copies that do not work.", units.Short,
			query{`sum by (cluster, kind) (hanse_copies_failing{cluster=~"$cluster"})`, "{{cluster}} {{kind}}"})).
		WithPanel(graph("Unknown", "Copies whose state the hub does not know.", units.Short,
			query{`sum by (cluster, kind) (hanse_copies_unknown{cluster=~"$cluster"})`, "{{cluster}} {{kind}}"})).
		WithPanel(graph("Changed by the cluster", "Copies in which the cluster stores other values than the hub sends.", units.Short,
			query{`sum by (cluster) (hanse_cluster_copies_by_reason{cluster=~"$cluster",reason="ChangedByCluster"}) or vector(0)`, "{{cluster}}"})).
		WithPanel(graph("Reasons", "Copies by the reason of their row, without Applied.", units.Short,
			query{`sum by (cluster, reason) (hanse_cluster_copies_by_reason{cluster=~"$cluster"}) or vector(0)`, "{{cluster}} {{reason}}"})).
		WithPanel(graph("Unclaimed copies", "Objects of the hub that no binding claims.", units.Short,
			query{`sum by (cluster) (hanse_unclaimed_copies{cluster=~"$cluster"})`, "{{cluster}}"})).
		WithRow(dashboard.NewRowBuilder("Writes")).
		WithPanel(graph("Time until a copy is applied", "99 of 100 changes are on the cluster within this time.", units.Seconds,
			query{quantile("0.99", "cluster", `hanse_cluster_apply_duration_seconds{cluster=~"$cluster"}`), "{{cluster}}"})).
		WithPanel(graph("Waiting copies", "Copies that wait for a write.", units.Short,
			query{`sum by (cluster) (hanse_member_queue_depth{cluster=~"$cluster"})`, "{{cluster}}"})).
		WithPanel(graph("Writes in flight", "Writes in flight, and how many may be.", units.Short,
			query{`sum by (cluster) (hanse_member_in_flight{cluster=~"$cluster"})`, "{{cluster}}"},
			query{`sum by (cluster) (hanse_member_in_flight_limit{cluster=~"$cluster"})`, "{{cluster}} limit"})).
		WithPanel(graph("Held writes", "1 while the hub holds its writes to the cluster.", units.Short,
			query{`max by (cluster) (hanse_member_circuit{cluster=~"$cluster"})`, "{{cluster}}"}))
}

func kinds() *dashboard.DashboardBuilder {
	return newDashboard("kinds", "Hanse: kinds and operators", "The copies of each kind, and the operators that act on them.").
		WithVariable(choice("kind", "hanse_copies")).
		WithRow(dashboard.NewRowBuilder("Operators")).
		WithPanel(graph("Ready", "Clusters on which the operator is ready.", units.Short,
			query{`sum by (operator) (hanse_operator_clusters{ready="true"}) or vector(0)`, "{{operator}}"})).
		WithPanel(graph("Not ready", "Clusters on which the operator is not ready.", units.Short,
			query{`sum by (operator) (hanse_operator_clusters{ready="false"}) or vector(0)`, "{{operator}}"})).
		WithPanel(graph("Charts", "The stored chart of each operator; always 1.", units.Short,
			query{"max by (operator, chart, version) (hanse_operator_info) or vector(0)", "{{operator}} {{chart}} {{version}}"})).
		WithRow(dashboard.NewRowBuilder("Copies")).
		WithPanel(graph("Copies", "Copies that the hub wants on clusters.", units.Short, query{`sum by (kind) (hanse_copies{kind=~"$kind"})`, "{{kind}}"})).
		WithPanel(graph("In sync", "The share of copies that have their wanted state or are held.", units.PercentUnit,
			query{`1 - (sum by (kind) (hanse_copies_out_of_sync{kind=~"$kind"}) + sum by (kind) (hanse_copies_unknown{kind=~"$kind"})) / (sum by (kind) (hanse_copies{kind=~"$kind"}) > 0)`, "{{kind}}"})).
		WithPanel(graph("Degraded", "Copies that do not work.", units.Short, query{`sum by (kind) (hanse_copies_failing{kind=~"$kind"})`, "{{kind}}"})).
		WithPanel(graph("Unknown", "Copies whose state the hub does not know.", units.Short,
			query{`sum by (kind) (hanse_copies_unknown{kind=~"$kind"})`, "{{kind}}"})).
		WithPanel(graph("Reasons", "Copies by the reason of their row, without Applied.", units.Short,
			query{`sum by (kind, reason) (hanse_kind_copies_by_reason{kind=~"$kind"}) or vector(0)`, "{{kind}} {{reason}}"})).
		WithPanel(graph("Corrected drift", "Copies that the hub restored, in an hour.", units.Short,
			query{`sum by (kind) (increase(hanse_drift_corrected_total{kind=~"$kind"}[1h])) or vector(0)`, "{{kind}}"})).
		WithRow(dashboard.NewRowBuilder("Time to converge")).
		WithPanel(graph("Until a copy is applied", "99 of 100 changes are on the cluster within this time.", units.Seconds,
			query{quantile("0.99", "kind", `hanse_kind_apply_duration_seconds{kind=~"$kind"}`), "{{kind}}"})).
		WithPanel(graph("Until a copy is applied: median", "Half of the changes are on the cluster within this time.", units.Seconds,
			query{quantile("0.5", "kind", `hanse_kind_apply_duration_seconds{kind=~"$kind"}`), "{{kind}}"})).
		WithPanel(graph("Until the status on the hub has it", "99 of 100 changes are in the status on the hub within this time.", units.Seconds,
			query{quantile("0.99", "kind", `hanse_kind_status_duration_seconds{kind=~"$kind"}`), "{{kind}}"}))
}

func hub() *dashboard.DashboardBuilder {
	// Other programs also serve the metrics of Go and of controller-runtime. With ofHub, a query selects only the
	// instances that serve a metric of the hub.
	const ofHub = " and on (job, instance) hanse_hub_leader"
	return newDashboard("hub", "Hanse: hub", "The processes of the hub.").
		WithRow(dashboard.NewRowBuilder("Processes")).
		WithPanel(graph("Leader", "1 for the process that leads.", units.Short, query{"hanse_hub_leader", "{{instance}}"})).
		WithPanel(graph("Heartbeats", "Rounds of the leader that ended, in a second.", units.Short,
			query{"sum(rate(hanse_hub_heartbeats_total[$__rate_interval]))", "heartbeats"})).
		WithPanel(graph("Certificate", "Time until the certificate of webhook and metrics expires.", units.Seconds,
			query{"min(hanse_hub_certificate_expiry_timestamp_seconds) - time()", "certificate"})).
		WithPanel(graph("Memory", "Resident memory of each process.", units.BytesIEC, query{"process_resident_memory_bytes" + ofHub, "{{instance}}"})).
		WithPanel(graph("CPU", "Cores that each process uses.", units.Short,
			query{"rate(process_cpu_seconds_total[$__rate_interval])" + ofHub, "{{instance}}"})).
		WithPanel(graph("Goroutines", "Goroutines of each process.", units.Short, query{"go_goroutines" + ofHub, "{{instance}}"})).
		WithRow(dashboard.NewRowBuilder("Queues")).
		WithPanel(graph("Queues of controllers", "Keys that wait for a controller.", units.Short,
			query{"sum by (name) (workqueue_depth" + ofHub + ")", "{{name}}"})).
		WithPanel(graph("Copies that wait for a write", "By cluster.", units.Short, query{"sum by (cluster) (hanse_member_queue_depth)", "{{cluster}}"})).
		WithPanel(graph("Report window", "99 of 100 changes of a binding waited for others no longer than this.", units.Seconds,
			query{"histogram_quantile(0.99, sum by (le) (rate(hanse_report_window_seconds_bucket[$__rate_interval])))", "window"})).
		WithRow(dashboard.NewRowBuilder("Writes and requests")).
		WithPanel(graph("Writes to the hub", "Writes to the hub's API server in a second.", units.Short,
			query{"sum by (kind, reason) (rate(hanse_hub_writes_total[$__rate_interval]))", "{{kind}} {{reason}}"})).
		WithPanel(graph("Writes that may be in flight", "1 while the hub's API server is slow or answers 429.", units.Short,
			query{"min(hanse_hub_write_width)", "writes"})).
		WithPanel(graph("Rows of bindings", "Rows of all bindings by state.", units.Short, query{"sum by (state) (hanse_binding_clusters)", "{{state}}"})).
		WithPanel(graph("Views", "Requests of users about members in a second, by the answer.", units.Short,
			query{"sum by (what, code) (rate(hanse_view_requests_total[$__rate_interval])) or vector(0)", "{{what}} {{code}}"})).
		WithPanel(graph("Console", "Requests of browsers in a second, by the answer, and pages that are open.", units.Short,
			query{"sum by (code) (rate(hanse_console_pages_total[$__rate_interval])) or vector(0)", "{{code}}"},
			query{"sum(hanse_console_streams)", "open pages"})).
		WithRow(dashboard.NewRowBuilder("Objects in memory")).
		WithPanel(graph("Hub objects", "Hub objects and objects of bundles in memory.", units.Short,
			query{"max by (group, kind) (hanse_templates)", "{{kind}}.{{group}}"})).
		WithPanel(graph("Size of hub objects", "As JSON, and as they are in memory.", units.BytesIEC, query{"max by (form) (hanse_templates_bytes)", "{{form}}"})).
		WithPanel(graph("Unpacked hub objects", "Hub objects that were used recently.", units.Short, query{"max(hanse_templates_unpacked)", "unpacked"}))
}

// quantile returns the query for a quantile of a native histogram.
func quantile(q, by, metric string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + ") (rate(" + metric + "[$__rate_interval])))"
}

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

func newDashboard(name, title, description string) *dashboard.DashboardBuilder {
	return dashboard.NewDashboardBuilder(title).Uid("hanse-"+name).Description(description).Tags([]string{"hanse"}).
		Time("now-3h", "now").Refresh("1m").Timezone(common.TimeZoneBrowser).Tooltip(dashboard.DashboardCursorSyncCrosshair).Readonly().
		Link(dashboard.NewDashboardLinkBuilder("Hanse").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"hanse"}).KeepTime(true).IncludeVars(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
}

// choice returns a variable by which a user selects values of a label. All values are selected by default.
func choice(label, metric string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(label).Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(" + metric + ", " + label + ")")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// query is a query with the legend of its series.
type query struct{ expr, legend string }
