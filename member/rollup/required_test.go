package rollup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// conditionList is the schema of a list of conditions.
const conditionList = `{type: array, items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}, reason: {type: string}}}}`

// A required field without a merged value must not keep the rest of the status from the hub object.
func TestARequiredFieldDoesNotHideTheRestOfTheStatus(t *testing.T) {
	tests := map[string]struct {
		in, want string // want has the conditions as a map from type to status
	}{
		"the worst of words of which one is unknown (gpu-operator)": {
			in: `
group: nvidia.com
kind: ClusterPolicy
schema: {state: {type: string, enum: [ignored, ready, notReady]}, namespace: {type: string}, conditions: ` + conditionList + `}
required: [state]
clusters:
  a: {state: ready, namespace: gpu, conditions: [{type: Ready, status: "True"}, {type: Error, status: "False"}]}
  b: {state: ready, namespace: gpu, conditions: [{type: Ready, status: "True"}, {type: Error, status: "False"}]}
  c: {state: notReady, namespace: gpu, conditions: [{type: Ready, status: "False", reason: Error}, {type: Error, status: "True", reason: OperandNotReady}]}`,
			want: `status: {state: notReady, namespace: gpu, conditions: {Ready: "False", Error: "True", hanse.dev/Healthy: "True"}}`,
		},
		"the worst of words in a field of any name (milvus)": {
			in: `
group: milvus.io
kind: Milvus
schema: {status: {type: string}, endpoint: {type: string}, conditions: ` + conditionList + `}
required: [status]
clusters:
  a: {status: Healthy, endpoint: "app:19530", conditions: [{type: MilvusReady, status: "True"}]}
  b: {status: Unhealthy, endpoint: "app:19530", conditions: [{type: MilvusReady, status: "False", reason: MilvusComponentNotHealthy}]}`,
			want: `{status: {status: Unhealthy, conditions: {MilvusReady: "False", hanse.dev/Healthy: "True"}}, leftOut: [endpoint]}`,
		},
		"a word of a cluster that does not answer is Unknown, if the schema has this word": {
			in:   "schema: {health: {type: string}, step: {type: string, enum: [Ready, Pending, Unknown]}}\nrequired: [step]\nclusters: {a: {step: Ready}, b: {step: Ready}}\naway: [b]",
			want: "status: {step: Unknown}",
		},
		"and the last one otherwise": {
			in: "schema: {step: {type: string, enum: [Ready, Pending]}}\nrequired: [step]\nclusters: {a: {step: Ready}, b: {step: Pending}}\naway: [b]", want: "status: {step: Pending}",
		},
		"a word that is not required has none": {
			in:   "schema: {phase: {type: string, enum: [Ready, Pending]}, replicas: {type: integer}}\nclusters: {a: {phase: Ready, replicas: 1}, b: {phase: Pending, replicas: 1}}\naway: [b]",
			want: "{status: {replicas: 2}, leftOut: [phase]}",
		},
		"two unknown words are empty": {
			in:   "schema: {step: {type: string}, replicas: {type: integer}}\nrequired: [step]\nclusters: {a: {step: Waxing, replicas: 1}, b: {step: Waning, replicas: 1}}",
			want: "{status: {step: '', replicas: 2}, leftOut: [step]}",
		},
		"names of one cluster, lists and objects are empty (solr)": {
			in: `
schema:
  podSelector: {type: string}
  internalCommonAddress: {type: string}
  solrNodes: {type: array, items: {type: object, properties: {name: {type: string}}}}
  zookeeperConnectionInfo: {type: object, required: [chroot], properties: {chroot: {type: string}, internalConnectionString: {type: string}}}
  labels: {type: object, additionalProperties: {type: string}}
  replicas: {type: integer}
required: [podSelector, internalCommonAddress, solrNodes, zookeeperConnectionInfo, labels]
clusters:
  a: {podSelector: a=b, internalCommonAddress: "http://app", solrNodes: [{name: x}], zookeeperConnectionInfo: {chroot: /}, replicas: 3}
  b: {podSelector: a=b, internalCommonAddress: "http://app", solrNodes: [{name: x}], zookeeperConnectionInfo: {chroot: /}, replicas: 3}`,
			want: `{status: {podSelector: '', internalCommonAddress: '', solrNodes: [], zookeeperConnectionInfo: {chroot: ''}, labels: {}, replicas: 6},
  leftOut: [internalCommonAddress, labels, podSelector, solrNodes, zookeeperConnectionInfo.chroot, zookeeperConnectionInfo.internalConnectionString]}`,
		},
		"never a number (koperator)": {
			in:   "schema: {state: {type: string}, alertCount: {type: integer}}\nrequired: [state, alertCount]\nclusters: {a: {state: Running, alertCount: 0}}",
			want: "{error: 'merging the status: a required field has no merged value: status.alertCount', leftOut: [alertCount]}",
		},
		"nothing that the schema does not allow": {
			in: `
schema:
  a: {type: string, minLength: 1}
  b: {type: string, enum: [x, y]}
  c: {type: string, format: date-time}
  d: {type: array, minItems: 1, items: {type: string}}
  e: {type: object, minProperties: 1, additionalProperties: {type: string}}
  f: {type: object, required: [count], properties: {count: {type: integer}}}
  g: {type: string, pattern: '^[a-z]+$'}
  h: {x-kubernetes-int-or-string: true}
required: [a, b, c, d, e, f, g, h]
clusters: {z: {other: 1}}`,
			want: "{error: 'merging the status: a required field has no merged value: status.a, status.b, status.c, status.d, status.e, status.f, status.g, status.h', leftOut: [c, d, h]}",
		},
		"nothing while no cluster has reported": {
			in:   "schema: {selector: {type: string}, conditions: " + conditionList + "}\nrequired: [selector]\nclusters: {a: {}}",
			want: "{error: 'merging the status: a required field has no merged value: status.selector', leftOut: [selector]}",
		},
		"an entry of a list has no empty values": {
			in: `
schema:
  pools: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name, url], properties: {name: {type: string}, url: {type: string}, replicas: {type: integer}}}}
clusters: {a: {pools: [{name: x, url: u, replicas: 1}]}}`,
			want: "leftOut: [pools]",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var want outcomeOf
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			got := readScenario(t, tc.in).merge(t)
			if got.Status != nil {
				got.Status = summarised(got.Status)
			}
			if diff := cmp.Diff(want, wired(t, got)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// A status with more conditions than a row has space for in full is on the hub object with all of them.
func TestManyConditionsReachTheHubObject(t *testing.T) {
	types := map[string]string{ // of OpenShift Hive's ClusterDeployment
		"Ready": "True", "Provisioned": "True", "Unreachable": "True", "InstallerImageResolutionFailed": "False", "ControlPlaneCertificateNotFound": "False",
		"IngressCertificateNotFound": "False", "DNSNotReady": "False", "InstallImagesNotResolved": "False", "ProvisionFailed": "False", "SyncSetFailed": "False",
		"RelocationFailed": "False", "Hibernating": "False", "InstallLaunchError": "False", "DeprovisionLaunchError": "False", "ProvisionStopped": "False",
		"AuthenticationFailure": "False", "AWSPrivateLinkFailed": "False",
	}
	var list []string
	for kind, status := range types {
		reason := "AsExpected"
		if kind == "Unreachable" {
			reason = "ErrorConnectingToCluster"
		}
		list = append(list, fmt.Sprintf(`{type: %s, status: "%s", reason: %s}`, kind, status, reason))
	}
	slices.Sort(list)
	got := readScenario(t, "group: hive.openshift.io\nkind: ClusterDeployment\nschema: {powerState: {type: string}, conditions: "+conditionList+"}\n"+
		"clusters: {a: {powerState: Running, installVersion: 4.20.1, conditions: ["+strings.Join(list, ", ")+"]}}").merge(t)
	if got.Error != "" {
		t.Fatal(got.Error)
	}
	want := map[string]any{hubv1.ConditionObjectHealthy: "True"}
	for kind, status := range types {
		want[kind] = status
	}
	if diff := cmp.Diff(want, summarised(got.Status)["conditions"]); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"conditions[].reason"}, got.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if c := find(got.Status, "Unreachable"); c["reason"] != "ErrorConnectingToCluster" {
		t.Errorf("the condition that fails lost its reason: %v", c)
	}
}

func TestALostConditionIsNamedUnlessItIsBadElsewhere(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`{type: Component%02dOfTheClusterIsReady, status: "True", reason: AsExpected}`, i))
	}
	got := readScenario(t, "schema: {replicas: {type: integer}, conditions: "+conditionList+"}\nclusters:\n"+
		"  a: {replicas: 1, conditions: ["+strings.Join(many, ", ")+"]}\n"+
		`  b: {replicas: 1, conditions: [{type: Component00OfTheClusterIsReady, status: "False", reason: Down}, {type: Component39OfTheClusterIsReady, status: "True"}]}`).merge(t)
	if got.Error != "" {
		t.Fatal(got.Error)
	}
	if find(got.Status, "Component00OfTheClusterIsReady")["status"] != "False" {
		t.Errorf("a condition that is bad on one cluster is not shown: %v", got.Status)
	}
	if c := find(got.Status, "Component39OfTheClusterIsReady"); c != nil || !slices.Contains(got.LeftOut, "conditions[Component39OfTheClusterIsReady]") || !slices.Contains(got.LeftOut, "conditions[other types]") {
		t.Errorf("a condition that one row has lost is %v, left out %v", c, got.LeftOut)
	}
	if got.Status["replicas"] != int64(2) {
		t.Errorf("sums weigh more than conditions of parts: %v", got.Status)
	}
}

func TestASumNamesTheClustersThatItLeavesOut(t *testing.T) {
	s := readScenario(t, "schema: {replicas: {type: integer}}\nclusters: {a: {replicas: 2}, b: {}, c: {}, d: {}, e: {}, f: {replicas: 1}, g: {other: 1}}")
	got := s.merge(t)
	want := outcomeOf{Status: map[string]any{"replicas": int64(3)}, LeftOut: []string{"the numbers of b, c, d and 1 more"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAGenerationIsNeverInvented(t *testing.T) {
	var fields []string
	for i := range 60 {
		fields = append(fields, fmt.Sprintf("someOtherKindOf%02dReplicas: 1", i))
	}
	got := readScenario(t, "schema: {observedGeneration: {type: integer}, phase: {type: string, enum: [Ready]}}\n"+
		"clusters: {a: {phase: Ready, "+strings.Join(fields, ", ")+"}}").merge(t)
	if _, invented := got.Status["observedGeneration"]; invented {
		t.Errorf("no cluster has an observedGeneration, and the hub object has one: %v", got.Status)
	}
}

// summarised returns the status with its conditions as a map from type to status.
func summarised(status map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range status {
		out[name] = value
	}
	if _, ok := status[conditionsField]; ok {
		conditions := map[string]any{}
		for _, c := range entries(status) {
			conditions[fmt.Sprint(c["type"])] = c["status"]
		}
		out[conditionsField] = conditions
	}
	return out
}
