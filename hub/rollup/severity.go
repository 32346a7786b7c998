package rollup

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// severities order the words of phases, the best first. Words on one line are equally bad.
var severities = ranks([][]string{
	{"Ready", "Running", "Active", "Available", "Healthy", "Bound", "Succeeded", "Complete", "Completed", "Provisioned", "Deployed"},
	{"Updating", "Upgrading", "Scaling", "Reconciling", "Progressing"},
	{"Pending", "Creating", "Initializing", "Provisioning", "Installing", "Starting"},
	{"Terminating", "Deleting"},
	{unknownWord},
	{"Degraded", "Unavailable"},
	{"Error", "Failed"},
})

const unknownWord = "Unknown"

// phasesOf are the words of fields that have no enum in the schemas of these kinds, or words in it that mean something there alone; the
// best first. What a cluster says that is away is the word Unknown, in the kind's spelling; without it the field is left out then.
var phasesOf = map[schema.GroupKind]map[string][][]string{
	{Group: "argoproj.io", Kind: "Rollout"}:  {"phase": {{"Healthy"}, {"Progressing"}, {"Paused"}, {"Degraded"}}},
	{Group: "argoproj.io", Kind: "Workflow"}: {"phase": {{"Succeeded"}, {"Running"}, {"Pending"}, {"Failed"}, {"Error"}}},
	{Group: "ceph.rook.io", Kind: "CephCluster"}: {
		"phase": {{"Ready", "Connected"}, {"Progressing", "Connecting"}, {"Deleting"}, {"Failure"}},
		"state": {{"Created", "Connected"}, {"Updating"}, {"Creating", "Connecting"}, {"Error"}},
	},
	{Group: "cluster.x-k8s.io", Kind: "Cluster"}:           {"phase": {{"Provisioned"}, {"Provisioning"}, {"Pending"}, {"Deleting"}, {unknownWord}, {"Failed"}}},
	{Group: "cluster.x-k8s.io", Kind: "MachineDeployment"}: {"phase": {{"Running"}, {"ScalingDown"}, {"ScalingUp"}, {unknownWord}, {"Failed"}}},
	{Group: "elasticsearch.k8s.elastic.co", Kind: "Elasticsearch"}: {
		"health": {{"green"}, {"yellow"}, {"unknown"}, {"red"}},
		"phase":  {{"Ready"}, {"ApplyingChanges"}, {"MigratingData"}, {"NodeShutdownStalled"}, {"Invalid"}},
	},
	{Group: "kibana.k8s.elastic.co", Kind: "Kibana"}:                  {"health": {{"green"}, {"yellow"}, {"unknown"}, {"red"}}},
	{Group: "kubevirt.io", Kind: "KubeVirt"}:                          {"phase": {{"Deployed"}, {"Deploying"}, {"Deleting"}, {"Deleted"}}},
	{Group: "mongodbcommunity.mongodb.com", Kind: "MongoDBCommunity"}: {"phase": {{"Running"}, {"Pending"}, {"Failed"}}},
	{Group: "psmdb.percona.com", Kind: "PerconaServerMongoDB"}:        {"state": perconaStates},
	{Group: "pxc.percona.com", Kind: "PerconaXtraDBCluster"}:          {"state": perconaStates},
	{Group: "velero.io", Kind: "Backup"}: {"phase": {
		{"Completed"}, {"Finalizing"}, {"WaitingForPluginOperations"}, {"InProgress"}, {"ReadyToStart"}, {"Queued"}, {"New"}, {"Deleting"},
		{"FinalizingPartiallyFailed"}, {"WaitingForPluginOperationsPartiallyFailed"}, {"PartiallyFailed"}, {"FailedValidation"}, {"Failed"},
	}},
}

var perconaStates = [][]string{{"ready"}, {"initializing"}, {"stopping"}, {"paused"}, {"unknown"}, {"error"}}

// severity weighs the words of one field.
type severity struct {
	rank    map[string]int
	unknown string // the word for Unknown, empty if there is none
}

func ranks(lines [][]string) severity {
	s := severity{rank: map[string]int{}}
	for i, words := range lines {
		for _, word := range words {
			s.rank[word] = i
			if word == unknownWord || word == "unknown" {
				s.unknown = word
			}
		}
	}
	return s
}

// severityOf a field; false if nobody knows what its words mean.
func severityOf(kind schema.GroupKind, name string, n *node) (severity, bool) {
	if lines, ok := phasesOf[kind][name]; ok {
		return ranks(lines), true
	}
	if name == "health" || len(n.enum) == 0 {
		return severity{}, false
	}
	for _, word := range n.enum {
		if _, ok := severities.rank[word]; !ok && word != "" {
			return severity{}, false
		}
	}
	return severities, true
}

// worst is the worst of some words; of equally bad ones the first by name. It is false if one of them is not known.
func (s severity) worst(words map[string]bool) (string, bool) {
	out := ""
	for _, word := range slices.Sorted(maps.Keys(words)) {
		rank, ok := s.rank[word]
		if !ok {
			return "", false
		}
		if out == "" || rank > s.rank[out] {
			out = word
		}
	}
	return out, out != ""
}
