package rollup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/operators"
)

// standardConditions is the schema of a list of conditions with the type that Kubernetes offers to all kinds.
const standardConditions = `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {
  type: object, required: [lastTransitionTime, message, reason, status, type], properties: {
    type: {type: string}, status: {type: string, enum: ["True", "False", Unknown]}, observedGeneration: {type: integer, format: int64},
    reason: {type: string, minLength: 1, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'},
    message: {type: string}, lastTransitionTime: {type: string, format: date-time}}}}`

// These schemas have the status fields that the states of a kind use.
const (
	appWrapperSchema = `properties: {phase: {type: string}, conditions: ` + standardConditions + `}`
	milvusSchema     = `
required: [status]
properties:
  status: {type: string}
  observedGeneration: {type: integer, format: int64}
  endpoint: {type: string}
  rollingModeVersion: {type: integer}
  currentImage: {type: string}
  currentVersion: {type: string}
  ingress: {type: object, properties: {loadBalancer: {type: object, properties: {}}}}
  componentsDeployStatus:
    type: object
    additionalProperties:
      type: object
      required: [generation, image, status]
      properties:
        generation: {type: integer, format: int64}
        image: {type: string}
        status: {type: object, properties: {replicas: {type: integer, format: int32}, readyReplicas: {type: integer, format: int32}}}
  conditions: ` + conditionList
)

// Three clusters report states of test/operators/states/known. An expert has said which health these states have
// together, and what the hub object shows.
func TestStatesOfOperatorsMerge(t *testing.T) {
	tests := map[string]struct {
		operator string
		states   [3]string // on the clusters a, b and c
		schema   string    // of the status
		healthy  metav1.ConditionStatus
		// want has the form of outcomeOf, with the conditions as a map from type to status. It is empty if the kind has no
		// status subresource.
		want string
	}{
		"an AppWrapper that has failed on one cluster is bad in each of its conditions": {
			operator: "appwrapper", states: [3]string{"succeeded", "succeeded", "failed"}, schema: appWrapperSchema, healthy: metav1.ConditionFalse,
			want: `
status: {conditions: {PodsReady: "False", QuotaReserved: "False", ResourcesDeployed: "False", Unhealthy: "True", hanse.dev/Healthy: "False"}}
leftOut: [phase]`,
		},
		"an AppWrapper that still runs on one cluster, and has succeeded on two, is healthy": {
			operator: "appwrapper", states: [3]string{"succeeded", "succeeded", "running"}, schema: appWrapperSchema, healthy: metav1.ConditionTrue,
			want: `
status: {conditions: {PodsReady: "True", QuotaReserved: Unknown, ResourcesDeployed: "True", Unhealthy: "False", hanse.dev/Healthy: "True"}}
leftOut: [phase]`,
		},
		"a Cluster of Cluster API that replaces workers on one cluster has all its conditions and sums": {
			operator: "capi-v1beta2", states: [3]string{"available", "available", "rolling out"}, healthy: metav1.ConditionFalse,
			schema: `
minProperties: 1
properties:
  observedGeneration: {type: integer, format: int64, minimum: 1}
  phase: {type: string, enum: [Pending, Provisioning, Provisioned, Deleting, Failed, Unknown]}
  initialization: {type: object, minProperties: 1, properties: {infrastructureProvisioned: {type: boolean}, controlPlaneInitialized: {type: boolean}}}
  controlPlane: &replicas
    type: object
    properties:
      desiredReplicas: {type: integer, format: int32}
      replicas: {type: integer, format: int32}
      readyReplicas: {type: integer, format: int32}
      availableReplicas: {type: integer, format: int32}
      upToDateReplicas: {type: integer, format: int32}
  workers: *replicas
  conditions: ` + standardConditions,
			want: `
status:
  observedGeneration: 1
  phase: Provisioned
  controlPlane: {desiredReplicas: 9, replicas: 9, readyReplicas: 9, availableReplicas: 9, upToDateReplicas: 9}
  workers: {desiredReplicas: 15, replicas: 15, readyReplicas: 15, availableReplicas: 15, upToDateReplicas: 12}
  conditions:
    Available: "True"
    ControlPlaneAvailable: "True"
    ControlPlaneInitialized: "True"
    ControlPlaneMachinesReady: "True"
    ControlPlaneMachinesUpToDate: "True"
    InfrastructureReady: "True"
    RemoteConnectionProbe: "True"
    TopologyReconciled: "True"
    WorkerMachinesReady: "True"
    WorkerMachinesUpToDate: "False"
    WorkersAvailable: "True"
    Deleting: "False"
    Paused: "False"
    Remediating: "False"
    RollingOut: "True"
    ScalingDown: "False"
    ScalingUp: "False"
    hanse.dev/Healthy: "False"
leftOut: ["conditions[].observedGeneration", "conditions[].reason"]`,
		},
		"a ClusterPolicy of NVIDIA that is not ready on one cluster has the worst word in the required state": {
			operator: "gpu-operator", states: [3]string{"ready", "ready", "operands not ready"}, healthy: metav1.ConditionFalse,
			schema: `{required: [state], properties: {state: {type: string, enum: [ignored, ready, notReady]}, namespace: {type: string}, conditions: ` + standardConditions + `}}`,
			want:   `status: {state: notReady, namespace: gpu-operator, conditions: {Ready: "False", Error: "True", hanse.dev/Healthy: "False"}}`,
		},
		"a ClusterDeployment of Hive that one cluster cannot reach has all its conditions, and no URL": {
			operator: "hive", states: [3]string{"running", "running", "unreachable"}, healthy: metav1.ConditionFalse,
			schema: `
properties:
  powerState: {type: string}
  installedTimestamp: {type: string, format: date-time}
  apiURL: {type: string}
  webConsoleURL: {type: string}
  installerImage: {type: string}
  cliImage: {type: string}
  installVersion: {type: string}
  conditions: ` + conditionList,
			want: `
status:
  powerState: Running
  conditions:
    InstallerImageResolutionFailed: "False"
    ControlPlaneCertificateNotFound: "False"
    IngressCertificateNotFound: "False"
    DNSNotReady: "False"
    InstallImagesNotResolved: "False"
    ProvisionFailed: "False"
    SyncSetFailed: "False"
    RelocationFailed: "False"
    InstallLaunchError: "False"
    DeprovisionLaunchError: "False"
    ProvisionStopped: "False"
    AuthenticationFailure: "False"
    Unreachable: "True"
    Hibernating: "False"
    Ready: "True"
    Provisioned: "True"
    RequirementsMet: "True"
    hanse.dev/Healthy: "False"
leftOut: [apiURL, cliImage, "conditions[].reason", installVersion, installedTimestamp, installerImage, webConsoleURL]`,
		},
		"a KafkaCluster of Koperator has no status, because its schema requires a number that is no count": {
			operator: "koperator", states: [3]string{"running", "running", "upgrading"}, healthy: metav1.ConditionFalse,
			schema: `
required: [state, alertCount]
properties:
  state: {type: string}
  alertCount: {type: integer}
  cruiseControlTopicStatus: {type: string}
  rollingUpgradeStatus: {type: object, required: [lastSuccess, errorCount], properties: {lastSuccess: {type: string}, errorCount: {type: integer}}}
  listenerStatuses: {type: object, properties: {}}
  brokersState:
    type: object
    additionalProperties:
      type: object
      required: [configurationState, gracefulActionState, perBrokerConfigurationState, rackAwarenessState]
      properties:
        configurationState: {type: string}
        rackAwarenessState: {type: string}
        perBrokerConfigurationState: {type: string}
        gracefulActionState: {type: object, required: [cruiseControlState], properties: {cruiseControlState: {type: string}}}`,
			want: `
error: 'merging the status: a required field has no merged value: status.alertCount'
leftOut: [alertCount, brokersState, listenerStatuses, rollingUpgradeStatus]`,
		},
		"an InferenceService whose new model does not load on one cluster is Ready, not healthy, and has no URL": {
			operator: "kserve", states: [3]string{"loaded", "loaded", "new model does not load"}, healthy: metav1.ConditionFalse,
			schema: `
properties:
  observedGeneration: {type: integer, format: int64}
  url: {type: string}
  components: {type: object, additionalProperties: {type: object, properties: {latestCreatedRevision: {type: string}, latestReadyRevision: {type: string}}}}
  modelStatus:
    type: object
    required: [transitionStatus]
    properties:
      transitionStatus: {type: string, enum: ["", UpToDate, InProgress, BlockedByFailedLoad, InvalidSpec]}
      states:
        type: object
        required: [activeModelState]
        properties:
          activeModelState: &word {type: string, enum: ["", Pending, Standby, Loading, Loaded, FailedToLoad]}
          targetModelState: *word
      copies: {type: object, required: [failedCopies], properties: {failedCopies: {type: integer}, totalCopies: {type: integer}}}
      lastFailureInfo: {type: object, properties: {reason: {type: string}, message: {type: string}, exitCode: {type: integer, format: int32}}}
  conditions: {type: array, items: {type: object, required: [status, type], properties: {
    type: {type: string}, status: {type: string}, reason: {type: string}, severity: {type: string}, lastTransitionTime: {type: string}}}}`,
			want: `
status:
  observedGeneration: 1
  conditions: {IngressReady: "True", LatestDeploymentReady: "True", PredictorReady: "True", Ready: "True", Stopped: "False", hanse.dev/Healthy: "False"}
leftOut: [modelStatus, url]`,
		},
		"a Volume of Longhorn with a replica that one cluster cannot schedule is degraded, and has no node": {
			operator: "longhorn", states: [3]string{"attached healthy", "attached healthy", "degraded"}, healthy: metav1.ConditionFalse,
			schema: `
properties:
  state: {type: string}
  robustness: {type: string}
  actualSize: {type: integer, format: int64}
  currentImage: {type: string}
  currentNodeID: {type: string}
  ownerID: {type: string}
  shareState: {type: string}
  frontendDisabled: {type: boolean}
  isStandby: {type: boolean}
  restoreRequired: {type: boolean}
  expansionRequired: {type: boolean}
  cloneStatus: {type: object, properties: {state: {type: string}}}
  kubernetesStatus: {type: object, properties: {pvName: {type: string}, pvStatus: {type: string}, pvcName: {type: string}, namespace: {type: string}}}
  conditions: ` + conditionList,
			want: `
status:
  state: attached
  robustness: degraded
  currentImage: longhornio/longhorn-engine:v1.9
  frontendDisabled: false
  isStandby: false
  restoreRequired: false
  expansionRequired: false
  conditions: {Restore: "False", Scheduled: Unknown, TooManySnapshots: "False", WaitForBackingImage: "False", hanse.dev/Healthy: "False"}
leftOut: [actualSize, currentNodeID, kubernetesStatus, ownerID]`,
		},
		"a ServiceExport with a conflict on one cluster is Valid and Ready, and conflicts": {
			operator: "mcs", states: [3]string{"exported", "exported", "conflict"}, healthy: metav1.ConditionFalse,
			schema: `properties: {conditions: ` + standardConditions + `}`,
			want:   `status: {conditions: {Conflict: "True", Ready: "True", Valid: "True", hanse.dev/Healthy: "False"}}`,
		},
		"a Milvus that one cluster upgrades is ready, not updated, and has no endpoint": {
			operator: "milvus", states: [3]string{"healthy", "healthy", "upgrading"}, schema: milvusSchema, healthy: metav1.ConditionFalse,
			want: `
status:
  observedGeneration: 1
  status: Healthy
  currentImage: milvusdb/milvus:v2.6.0
  currentVersion: v2.6.0
  conditions: {EtcdReady: "True", MilvusReady: "True", MilvusUpdated: "False", MsgStreamReady: "True", StorageReady: "True", hanse.dev/Healthy: "False"}
leftOut: [componentsDeployStatus, endpoint, ingress, rollingModeVersion]`,
		},
		"a Milvus that is unhealthy on one cluster has the worst word in the required status": {
			operator: "milvus", states: [3]string{"healthy", "healthy", "unhealthy"}, schema: milvusSchema, healthy: metav1.ConditionFalse,
			want: `
status:
  observedGeneration: 1
  status: Unhealthy
  currentImage: milvusdb/milvus:v2.6.0
  currentVersion: v2.6.0
  conditions: {EtcdReady: "True", MilvusReady: "False", MilvusUpdated: "True", MsgStreamReady: "True", StorageReady: "True", hanse.dev/Healthy: "False"}
leftOut: [componentsDeployStatus, endpoint, ingress, rollingModeVersion]`,
		},
		"a SolrCloud that one cluster upgrades has its sums, and required fields of one cluster are empty": {
			operator: "solr", states: [3]string{"ok", "ok", "upgrading all ready"}, healthy: metav1.ConditionFalse,
			schema: `
required: [backupRestoreReady, internalCommonAddress, podSelector, readyReplicas, replicas, solrNodes, upToDateNodes, version, zookeeperConnectionInfo]
properties:
  replicas: {type: integer, format: int32}
  readyReplicas: {type: integer, format: int32}
  upToDateNodes: {type: integer, format: int32}
  podSelector: {type: string}
  version: {type: string}
  targetVersion: {type: string}
  internalCommonAddress: {type: string}
  backupRestoreReady: {type: boolean}
  zookeeperConnectionInfo: {type: object, required: [chroot], properties: {internalConnectionString: {type: string}, chroot: {type: string}}}
  solrNodes:
    type: array
    items:
      type: object
      required: [internalAddress, name, nodeName, ready, scheduledForDeletion, specUpToDate, version]
      properties:
        name: {type: string}
        nodeName: {type: string}
        internalAddress: {type: string}
        ready: {type: boolean}
        version: {type: string}
        specUpToDate: {type: boolean}
        scheduledForDeletion: {type: boolean}`,
			want: `
status:
  replicas: 9
  readyReplicas: 9
  upToDateNodes: 7
  version: 9.8.0
  backupRestoreReady: false
  internalCommonAddress: ''
  podSelector: ''
  solrNodes: []
  zookeeperConnectionInfo: {chroot: ''}
leftOut: [internalCommonAddress, podSelector, solrNodes, targetVersion, zookeeperConnectionInfo.chroot, zookeeperConnectionInfo.internalConnectionString]`,
		},
		"a VitessCluster with a tablet down on one cluster has the generation that all have observed": {
			operator: "vitess", states: [3]string{"ok", "ok", "tablet down"}, healthy: metav1.ConditionFalse,
			schema: `
properties:
  observedGeneration: {type: integer, format: int64}
  gatewayServiceName: {type: string}
  globalLockserver:
    type: object
    properties:
      etcd: {type: object, properties: {available: {type: string}, clientServiceName: {type: string}, observedGeneration: {type: integer, format: int64}}}
  vitessDashboard: {type: object, properties: {available: {type: string}, serviceName: {type: string}}}
  vtadmin: {type: object, properties: {available: {type: string}, serviceName: {type: string}}}
  cells: {type: object, additionalProperties: {type: object, properties: {gatewayAvailable: {type: string}, pendingChanges: {type: string}}}}
  keyspaces:
    type: object
    additionalProperties:
      type: object
      properties:
        cells: {type: array, items: {type: string}}
        desiredShards: {type: integer, format: int32}
        shards: {type: integer, format: int32}
        readyShards: {type: integer, format: int32}
        updatedShards: {type: integer, format: int32}
        desiredTablets: {type: integer, format: int32}
        tablets: {type: integer, format: int32}
        readyTablets: {type: integer, format: int32}
        updatedTablets: {type: integer, format: int32}
        pendingChanges: {type: string}`,
			want: `
status: {observedGeneration: 1, gatewayServiceName: app-vtgate, globalLockserver: {etcd: {observedGeneration: 1}}}
leftOut: [cells, globalLockserver.etcd.available, globalLockserver.etcd.clientServiceName, keyspaces, vitessDashboard]`,
		},
		"a PodGroup of Volcano that one cluster cannot schedule is not healthy, and the hub writes no status": {
			operator: "volcano-podgroup", states: [3]string{"running", "running", "inqueue unschedulable"}, healthy: metav1.ConditionFalse,
			schema: `{properties: {phase: {type: string}, running: {type: integer, format: int32}, conditions: ` + conditionList + `}}`,
		},
		"a Queue of Volcano that is closed on one cluster is Closed, and its required map is empty": {
			operator: "volcano-queue", states: [3]string{"open", "open", "closed"}, healthy: metav1.ConditionFalse,
			schema: `
required: [allocated]
properties:
  state: {type: string}
  running: {type: integer, format: int32}
  pending: {type: integer, format: int32}
  inqueue: {type: integer, format: int32}
  reservation: {type: object, properties: {nodes: {type: array, items: {type: string}}}}
  allocated: {type: object, additionalProperties: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}`,
			want: `
status: {state: Closed, allocated: {}}
leftOut: [allocated, inqueue, pending, running]`,
		},
		"a VerticalPodAutoscaler without pods on one cluster provides no recommendation": {
			operator: "vpa", states: [3]string{"provided", "provided", "no pods"}, healthy: metav1.ConditionFalse,
			schema: `
properties:
  recommendation:
    type: object
    properties:
      containerRecommendations:
        type: array
        items:
          type: object
          required: [target]
          properties:
            containerName: {type: string}
            target: &amounts {type: object, additionalProperties: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}
            lowerBound: *amounts
            upperBound: *amounts
  conditions: ` + conditionList,
			want: `status: {conditions: {NoPodsMatched: Unknown, RecommendationProvided: "False", hanse.dev/Healthy: "False"}}`,
		},
	}
	kinds := map[string]operators.Kind{}
	for _, k := range operators.Kinds(t, "known") {
		kinds[k.Operator] = k
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := kinds[tc.operator]
			crd, gvk := k.CRD(), k.Object.GroupVersionKind()
			status := apiextensionsv1.JSONSchemaProps{Type: "object"}
			if err := yaml.UnmarshalStrict([]byte(tc.schema), &status); err != nil {
				t.Fatal(err)
			}
			crd.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"status": status},
			}}
			schema, subresource, err := NewSchema(crd, gvk.Version)
			if err != nil {
				t.Fatal(err)
			}
			var rows []hubv1.ClusterRow
			var targets []hubv1.BindingTarget
			for i, state := range tc.states {
				obj, cluster := inState(t, k, state), string("abc"[i])
				reported, _ := obj.Object["status"].(map[string]any)
				for field := range reported {
					if _, ok := status.Properties[field]; !ok {
						t.Errorf("the schema lacks the field %s of the state %q", field, state)
					}
				}
				v := health.Assess(obj, health.ReadConventions(crd, gvk.Version))
				rows = append(rows, hubv1.ClusterRow{
					Name: cluster, UID: types.UID(cluster), Generation: obj.GetGeneration(), Applied: metav1.ConditionTrue, LastTransitionTime: &noon,
					Health: v.Health, Reason: v.Reason, Message: v.Message, Observed: raw(health.Project(gvk.GroupKind(), reported)),
				})
				targets = append(targets, hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent})
			}
			if c := healthy(rows, targets); c.Status != tc.healthy {
				t.Errorf("Healthy of the binding is %s (%s: %s), want %s", c.Status, c.Reason, c.Message, tc.healthy)
			}
			if subresource != (tc.want != "") {
				t.Fatalf("status subresource: %t", subresource)
			}
			if !subresource {
				return
			}
			var got, want outcomeOf
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			got.Status, got.LeftOut, err = MergeStatus(schema, Rules{}, k.Object, rows, targets, noon)
			if err != nil {
				got.Error = err.Error()
			} else {
				got.Status = summarised(got.Status)
			}
			if diff := cmp.Diff(want, wired(t, got)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// inState returns the object of a kind in the state with this name.
func inState(t *testing.T, k operators.Kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(k.States, func(s operators.State) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s has no state %q", k.Operator, name)
	}
	return k.In(t, k.States[i])
}
