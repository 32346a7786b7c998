package protect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// sample is an object of a federated kind, with a status that the hub might write.
type sample struct {
	apiVersion, kind, resource string
	body, status               string
}

const podTemplate = `selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}`

// samples are of all kinds of the API server whose users may want to place, and one custom resource.
var samples = []sample{
	{"apps/v1", "Deployment", "deployments", `{spec: {` + podTemplate + `}}`, `{replicas: 3, readyReplicas: 2}`},
	{"apps/v1", "StatefulSet", "statefulsets", `{spec: {serviceName: a, ` + podTemplate + `}}`, `{replicas: 3, readyReplicas: 2}`},
	{"apps/v1", "DaemonSet", "daemonsets", `{spec: {` + podTemplate + `}}`, `{currentNumberScheduled: 3, desiredNumberScheduled: 3, numberMisscheduled: 0, numberReady: 2}`},
	{"apps/v1", "ReplicaSet", "replicasets", `{spec: {` + podTemplate + `}}`, `{replicas: 3, readyReplicas: 2}`},
	{"batch/v1", "Job", "jobs", `{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`, `{active: 2}`},
	{
		"batch/v1", "CronJob", "cronjobs", `{spec: {schedule: "0 * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`,
		`{lastScheduleTime: "2026-11-28T10:00:00Z"}`,
	},
	{"v1", "Service", "services", `{spec: {ports: [{port: 80}]}}`, `{loadBalancer: {}, conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-11-28T10:00:00Z"}]}`},
	{"v1", "Pod", "pods", `{spec: {containers: [{name: c, image: i}]}}`, `{message: m}`},
	{"v1", "ReplicationController", "replicationcontrollers", `{spec: {selector: {app: a}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`, `{replicas: 3}`},
	{"v1", "ResourceQuota", "resourcequotas", `{spec: {hard: {pods: 100}}}`, `{used: {pods: 3}}`},
	{
		"v1", "PersistentVolumeClaim", "persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		`{conditions: [{type: A, status: "True"}]}`,
	},
	{"v1", "Namespace", "namespaces", `{}`, `{conditions: [{type: A, status: "True"}]}`},
	{"networking.k8s.io/v1", "Ingress", "ingresses", `{spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`, `{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}`},
	{
		"autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", `{spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`,
		`{currentReplicas: 2, desiredReplicas: 3}`,
	},
	{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", `{spec: {maxUnavailable: 1}}`, `{currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 2}`},
	{"protect.example.com/v1", "Lamp", "lamps", `{spec: {}}`, `{on: true}`},
}

// ownKinds are entries of the value federatedKinds for kinds that the hub itself uses.
var ownKinds = []any{
	map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "secrets", "events"}},
	map[string]any{"apiGroups": []any{"events.k8s.io"}, "resources": []any{"events"}},
	map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}},
}

// federated returns the value federatedKinds for the kinds of samples.
func federated(samples ...sample) []any {
	var kinds []any
	for _, s := range samples {
		kinds = append(kinds, map[string]any{
			"apiGroups": []any{schema.FromAPIVersionAndKind(s.apiVersion, s.kind).Group}, "resources": []any{s.resource}, "status": true,
		})
	}
	return kinds
}

func (s sample) object(t *testing.T, field, content string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if field == "" {
		must(t, yaml.Unmarshal([]byte(content), &o.Object))
	} else {
		must(t, yaml.Unmarshal(fmt.Appendf(nil, "{%s: %s}", field, content), &o.Object))
	}
	o.SetAPIVersion(s.apiVersion)
	o.SetKind(s.kind)
	if s.kind != "Namespace" {
		o.SetNamespace("default")
	}
	o.SetName("account-sample")
	return o
}

// servesLamps installs the definition of the custom resource of the samples.
func servesLamps(t *testing.T, admin client.Client) {
	t.Helper()
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.protect.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "protect.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Singular: "lamp", Kind: "Lamp", ListKind: "LampList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}}
	must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), crd)))
	eventually(t, func() error {
		_, err := admin.RESTMapper().RESTMapping(schema.GroupKind{Group: "protect.example.com", Kind: "Lamp"})
		return err
	})
}

// asTheHub returns a client of the hub's account, which has the roles that the chart creates.
func asTheHub(t *testing.T, admin client.Client) client.Client {
	t.Helper()
	for _, o := range theChart(t, append(federated(samples...), ownKinds...)) {
		if strings.HasPrefix(o.GetAPIVersion(), rbacv1.GroupName) && strings.HasPrefix(o.GetName(), "hanse-hub") {
			must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), o)))
		}
	}
	var rules []rbacv1.PolicyRule
	for _, s := range samples {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{schema.FromAPIVersionAndKind(s.apiVersion, s.kind).Group}, Resources: []string{s.resource}, Verbs: []string{"get"},
		})
	}
	apiserver.AwaitRights(t, hubConfig, theHub, "default", rules...)
	return as(t, theHub)
}

// withoutStatus returns an object without the fields that a status write may change.
func withoutStatus(t *testing.T, admin client.Client, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	fresh := o.DeepCopy()
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(o), fresh))
	fresh.SetManagedFields(nil)
	fresh.SetResourceVersion("")
	delete(fresh.Object, "status")
	return fresh.Object
}

// TestTheHubWritesOnlyTheStatusOfUsersObjects checks the writes that the chart's roles allow to the hub's account, for
// each kind with a status. For some kinds the API server itself ignores the metadata of a status write.
func TestTheHubWritesOnlyTheStatusOfUsersObjects(t *testing.T) {
	admin := installed(t)
	servesLamps(t, admin)
	hub, ctx := asTheHub(t, admin), t.Context()
	metadata := map[string]string{
		"a label":                   `{"labels":{"stolen":"yes"}}`,
		"an annotation":             `{"annotations":{"stolen":"yes"}}`,
		"an annotation of rollouts": `{"annotations":{"hanse.dev/rollout-undo":"6"}}`,
		"a finalizer":               `{"finalizers":["example.com/stolen"]}`,
		"no finalizer":              `{"finalizers":null}`,
		"no label":                  `{"labels":null}`,
		"an owner that is missing":  `{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"6f1c0000-0000-4000-8000-000000000000"}]}`,
	}
	refusals := 0
	for _, s := range samples {
		t.Run(s.kind, func(t *testing.T) {
			o := s.object(t, "", s.body)
			o.SetLabels(map[string]string{"theirs": "yes"})
			o.SetFinalizers([]string{"example.com/theirs"})
			must(t, admin.Create(ctx, o))
			t.Cleanup(func() {
				ctx := context.WithoutCancel(ctx)
				must(t, admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
				must(t, client.IgnoreNotFound(admin.Delete(ctx, o)))
			})
			before := withoutStatus(t, admin, o)
			status := s.object(t, "status", s.status)
			must(t, hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(hubv1.StatusFieldManager)))
			for name, patch := range metadata {
				err := hub.Status().Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":%s}`, patch)))
				if err != nil {
					refused(t, err, "the hub writes only the status of users' objects")
					refusals++
				}
				if diff := cmp.Diff(before, withoutStatus(t, admin, o)); diff != "" {
					t.Errorf("%s: a status write of the hub changed (-before +after):\n%s", name, diff)
				}
			}
			refused(t, hub.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
		})
	}
	if refusals < 6*(len(samples)-2) { // a status write ignores the metadata of a custom resource, and labels of a Deployment
		t.Errorf("the policy refused only %d writes", refusals)
	}
}

// TestARoleBesideTheChartGivesTheHubNoMetadata grants the hub the status of a kind that is not federated.
func TestARoleBesideTheChartGivesTheHubNoMetadata(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	meta := metav1.ObjectMeta{Name: "account-beside"}
	status := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}
	created := []client.Object{
		&corev1.Node{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{status}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: theHub}},
		},
	}
	for _, o := range created {
		must(t, admin.Create(ctx, o))
		t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(ctx), o)) })
	}
	apiserver.AwaitRights(t, hubConfig, theHub, "", status)
	hub, node := as(t, theHub), &corev1.Node{ObjectMeta: meta}
	must(t, hub.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))))
	err := hub.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"stolen":"yes"}}}`)))
	refused(t, err, "the hub writes only the status of users' objects")
}

func TestAStatusIsWrittenOfAnObjectThatIsBeingDeleted(t *testing.T) {
	admin := installed(t)
	servesLamps(t, admin)
	hub, ctx := asTheHub(t, admin), t.Context()
	for _, s := range samples {
		if s.kind == "Namespace" { // no controller ends the deletion of a namespace here
			continue
		}
		t.Run(s.kind, func(t *testing.T) {
			o := s.object(t, "", s.body)
			o.SetName("account-deleted")
			o.SetFinalizers([]string{"example.com/theirs"})
			must(t, admin.Create(ctx, o))
			must(t, admin.Delete(ctx, o))
			status := s.object(t, "status", s.status)
			status.SetName(o.GetName())
			must(t, hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(hubv1.StatusFieldManager)))
			must(t, admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		})
	}
}

// TestTheHubWritesItsOwnObjectsAlsoIfTheirKindsAreFederated writes the objects that the hub has in its own namespace,
// and an event.
func TestTheHubWritesItsOwnObjectsAlsoIfTheirKindsAreFederated(t *testing.T) {
	admin := installed(t)
	hub, ctx := asTheHub(t, admin), t.Context()
	apiserver.AwaitRights(t, hubConfig, theHub, hubv1.SystemNamespace,
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"delete"}})
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	own := []client.Object{
		&corev1.Secret{ObjectMeta: meta(hubv1.SystemNamespace, "account-revision"), Type: "hanse.dev/revision"},
		&coordinationv1.Lease{ObjectMeta: meta(hubv1.SystemNamespace, "account")},
	}
	for _, o := range own {
		must(t, hub.Create(ctx, o))
		must(t, hub.Delete(ctx, o))
	}
	must(t, hub.Create(ctx, &corev1.Event{ObjectMeta: meta("default", "account"), InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "a"}}))
	data := client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))
	must(t, hub.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta(hubv1.SystemNamespace, Name)}, data))
	must(t, admin.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta(hubv1.SystemNamespace, Name)}, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))))

	theirs := &corev1.ConfigMap{ObjectMeta: meta("default", "account-theirs")}
	must(t, admin.Create(ctx, theirs))
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(ctx), theirs) })
	refused(t, hub.Patch(ctx, theirs.DeepCopy(), data), "the hub writes only the status of users' objects")
	for _, namespace := range []string{"default", hubv1.SystemNamespace} {
		refused(t, hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(namespace, "account-forged")}), "the hub writes only the status of users' objects")
	}
}

func TestTheHubCreatesUsersObjectsOnlyAsDryRuns(t *testing.T) {
	admin := installed(t)
	servesLamps(t, admin)
	hub, ctx := asTheHub(t, admin), t.Context()
	for _, s := range samples {
		o := s.object(t, "", s.body)
		o.SetName("account-created")
		eventually(t, func() error { return hub.Create(ctx, o.DeepCopy(), client.DryRunAll) }) // the quota of another sample is counted late
		refused(t, hub.Create(ctx, o.DeepCopy()), "the hub writes only the status of users' objects")
		refused(t, hub.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll))
	}
}

// TestTheHubChangesOnlyItsFinalizerOnMemberClusters: the hub needs patch on MemberClusters for its finalizer, and an
// admin decides on the rest.
func TestTheHubChangesOnlyItsFinalizerOnMemberClusters(t *testing.T) {
	admin := installed(t)
	hub, ctx := as(t, theHub), t.Context()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "account", Labels: map[string]string{"a": "b"}, Finalizers: []string{"example.com/theirs"}}}
	c.Spec = hubv1.MemberClusterSpec{
		Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "account", Key: "kubeconfig"}}},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll}, RequirePlaceVerb: true,
	}
	must(t, admin.Create(ctx, c))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		must(t, admin.Patch(ctx, c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		must(t, client.IgnoreNotFound(admin.Delete(ctx, c)))
	})
	merge := func(patch string) error {
		return hub.Patch(ctx, c.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	for _, patch := range []string{
		`{"spec":{"requirePlaceVerb":false}}`, `{"metadata":{"labels":{"a":"c"}}}`, `{"metadata":{"labels":null}}`, `{"metadata":{"annotations":{"a":"c"}}}`,
		`{"metadata":{"finalizers":null}}`, `{"metadata":{"finalizers":["hanse.dev/withdraw"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"6f1c0000-0000-4000-8000-000000000000"}]}}`,
	} {
		refused(t, merge(patch), "only its own finalizer on MemberClusters")
	}
	refused(t, hub.Delete(ctx, c.DeepCopy()), "only its own finalizer on MemberClusters")
	must(t, merge(`{"metadata":{"finalizers":["example.com/theirs","hanse.dev/withdraw"]}}`))
	must(t, merge(`{"metadata":{"finalizers":["example.com/theirs"]}}`))
	must(t, hub.Status().Patch(ctx, c.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))))
}

// TestNoSubresourceEvadesTheVerbsOfRollouts sets the annotation hanse.dev/rollout-undo through every subresource of
// these kinds that takes objects.
func TestNoSubresourceEvadesTheVerbsOfRollouts(t *testing.T) {
	admin := installed(t)
	servesLamps(t, admin)
	ctx := t.Context()
	const sneak = "sneak"
	var rules []rbacv1.PolicyRule
	for _, s := range samples {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{schema.FromAPIVersionAndKind(s.apiVersion, s.kind).Group}, Resources: []string{"*"}, Verbs: []string{"get", "update", "patch", "create"},
		})
	}
	grant(t, admin, "protect-sneak", sneak, rules...)
	user := as(t, sneak)
	undo := annotated(hubv1.RolloutUndoAnnotation, `"6"`)
	const words = "sneak needs the right to the verb rollout-undo on "
	for _, s := range samples {
		t.Run(s.kind, func(t *testing.T) {
			o := s.object(t, "", s.body)
			o.SetName("account-sneak")
			must(t, admin.Create(ctx, o))
			t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(ctx), o, client.GracePeriodSeconds(0))) })
			before := withoutStatus(t, admin, o)
			subresources := []string{"status"}
			switch s.kind {
			case "Pod":
				subresources = append(subresources, "ephemeralcontainers", "resize")
			case "Namespace":
				subresources = append(subresources, "finalize")
			case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
				subresources = append(subresources, "scale")
			}
			for _, sub := range subresources {
				err := user.SubResource(sub).Patch(ctx, o.DeepCopy(), undo)
				if s.kind == "Namespace" && sub == "finalize" && apierrors.IsMethodNotSupported(err) { // it takes updates only
					finalized := o.DeepCopy()
					finalized.SetAnnotations(map[string]string{hubv1.RolloutUndoAnnotation: "6"})
					err = user.SubResource(sub).Update(ctx, finalized)
				}
				if err != nil {
					refused(t, err, words)
				} else if s.kind != "Lamp" && (sub == "status" || sub == "finalize") { // the API server ignores the annotation in the others
					t.Errorf("%s/%s takes the annotation", s.resource, sub)
				}
			}
			if s.kind == "Pod" { // a binding hands its annotations on to the pod
				b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: o.GetName(), Annotations: map[string]string{hubv1.RolloutUndoAnnotation: "6"}}}
				b.Target = corev1.ObjectReference{Kind: "Node", Name: "n"}
				refused(t, user.SubResource("binding").Create(ctx, &corev1.Pod{ObjectMeta: b.ObjectMeta}, b), words)
			}
			if diff := cmp.Diff(before, withoutStatus(t, admin, o)); diff != "" {
				t.Errorf("a subresource changed (-before +after):\n%s", diff)
			}
		})
	}
}

// harmless are the writes that the chart grants to the hub and that no policy bounds, with the reason. A key is
// "verb resource.group", and the name if the rule has one.
var harmless = map[string]string{
	"create resourcebindings.hanse.dev":                                            ownKind,
	"create clusterresourcebindings.hanse.dev":                                     ownKind,
	"patch resourcebindings.hanse.dev":                                             ownKind,
	"patch clusterresourcebindings.hanse.dev":                                      ownKind,
	"delete resourcebindings.hanse.dev":                                            ownKind,
	"delete clusterresourcebindings.hanse.dev":                                     ownKind,
	"update resourcebindings/status.hanse.dev":                                     ownKind,
	"update clusterresourcebindings/status.hanse.dev":                              ownKind,
	"create setrollouts.hanse.dev":                                                 ownKind,
	"patch setrollouts.hanse.dev":                                                  ownKind,
	"delete setrollouts.hanse.dev":                                                 ownKind,
	"create events":                                                                anEvent,
	"create events.events.k8s.io":                                                  anEvent,
	"patch events":                                                                 anEvent,
	"patch events.events.k8s.io":                                                   anEvent,
	"create tokenreviews.authentication.k8s.io":                                    "it stores no object",
	"create subjectaccessreviews.authorization.k8s.io":                             "it stores no object",
	"create leases.coordination.k8s.io":                                            "the Role is in hanse-system, whose Leases are the hub's own",
	"update leases.coordination.k8s.io":                                            "the Role is in hanse-system, whose Leases are the hub's own",
	"delete leases.coordination.k8s.io":                                            "the Role is in hanse-system, whose Leases are the hub's own",
	"create configmaps hanse-epochs":                                               "the ConfigMap is the hub's own",
	"update configmaps hanse-epochs":                                               "the ConfigMap is the hub's own",
	"patch configmaps hanse-epochs":                                                "the ConfigMap is the hub's own",
	"create configmaps hanse-protected":                                            "the ConfigMap is the hub's own",
	"patch configmaps hanse-protected":                                             "the ConfigMap is the hub's own",
	"patch validatingwebhookconfigurations.admissionregistration.k8s.io hanse-hub": "the API server evaluates no policy for this kind; docs/admission.md says what the hub could do",
	"patch mutatingwebhookconfigurations.admissionregistration.k8s.io hanse-hub":   "granted only with webhook.authors; the API server evaluates no policy for this kind, see docs/admission.md",
}

const (
	ownKind = "only the hub writes objects of this kind"
	anEvent = "an event is a record for users, which expires; no controller acts on it"
)

// operations has the operation that admission sees for a verb.
var operations = map[string]admissionregistrationv1.OperationType{
	"create": admissionregistrationv1.Create, "update": admissionregistrationv1.Update, "patch": admissionregistrationv1.Update,
	"delete": admissionregistrationv1.Delete, "deletecollection": admissionregistrationv1.Delete,
}

// TestEachWriteThatTheChartGrantsTheHubIsBoundedOrHarmless reads the rules of all roles that the chart binds to the
// hub's account. Each write must match a policy of the chart that limits this account, or have a reason in harmless.
func TestEachWriteThatTheChartGrantsTheHubIsBoundedOrHarmless(t *testing.T) {
	objects := theChart(t, federated(samples...))
	unused := maps.Clone(harmless)
	for _, w := range writesOf(t, objects) {
		_, isHarmless := harmless[w.text()]
		delete(unused, w.text())
		switch bounded := w.isBounded(t, objects); {
		case bounded && isHarmless:
			t.Errorf("%s: a policy bounds it, so it needs no reason", w.text())
		case !bounded && !isHarmless:
			t.Errorf("%s: no policy bounds what the hub does with it; add a rule to charts/hanse-hub/templates/protection.yaml, or a reason to the test", w.text())
		}
	}
	for text := range unused {
		t.Errorf("%s: the chart does not grant it, so it needs no reason", text)
	}
}

// write is a right of the hub to write.
type write struct{ verb, group, resource, name string }

func (w write) text() string {
	return strings.TrimSpace(w.verb + " " + schema.GroupResource{Group: w.group, Resource: w.resource}.String() + " " + w.name)
}

func decode(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to))
}

// writesOf returns the rights of the roles that the objects bind to the hub's account, except those to read.
func writesOf(t *testing.T, objects []*unstructured.Unstructured) []write {
	t.Helper()
	bound := map[string]bool{}
	for _, o := range objects {
		var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
		if strings.HasSuffix(o.GetKind(), "RoleBinding") {
			decode(t, o, &b)
		}
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == "hanse-hub" }) {
			bound[b.RoleRef.Kind+" "+o.GetNamespace()+" "+b.RoleRef.Name] = true
		}
	}
	var out []write
	for _, o := range objects {
		if !bound[o.GetKind()+" "+o.GetNamespace()+" "+o.GetName()] {
			continue
		}
		var role rbacv1.ClusterRole
		decode(t, o, &role)
		for _, rule := range role.Rules {
			out = append(out, writesIn(rule)...)
		}
	}
	if len(out) == 0 {
		t.Fatal("the chart binds no role to the hub")
	}
	return out
}

func writesIn(rule rbacv1.PolicyRule) (out []write) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		if slices.Contains([]string{"get", "list", "watch"}, verb) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					out = append(out, write{verb, group, resource, name})
				}
			}
		}
	}
	return out
}

// isBounded reports whether a policy of the chart applies to the hub's account and matches the write.
func (w write) isBounded(t *testing.T, objects []*unstructured.Unstructured) bool {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		decode(t, o, &p)
		if !slices.ContainsFunc(p.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Expression == "request.userInfo.username == '"+theHub+"'"
		}) {
			continue
		}
		for _, r := range p.Spec.MatchConstraints.ResourceRules {
			main, _, _ := strings.Cut(w.resource, "/")
			if slices.Contains(r.APIGroups, w.group) && (slices.Contains(r.Resources, w.resource) || main != w.resource && slices.Contains(r.Resources, main+"/*")) &&
				slices.Contains(r.Operations, operations[w.verb]) {
				return true
			}
		}
	}
	return false
}
