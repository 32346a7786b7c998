package read_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/read"
	"github.com/hanse-dev/hanse/test/apiserver"
)

func made[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// family has the objects that an operator creates for a custom resource with the UID "cr", in a separate namespace: a
// StatefulSet with one pod, and a Deployment whose ReplicaSet has no pods.
type family struct {
	*testing.T
	admin kubernetes.Interface
	ns    string
}

func newFamily(t *testing.T) *family {
	t.Helper()
	apiserver.Needed(t)
	w := &family{T: t, admin: kubernetes.NewForConfigOrDie(apiServer)}
	ns := made[*corev1.Namespace](t)(w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}, metav1.CreateOptions{}))
	w.ns = ns.Name
	labels := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}}
	set := made[*appsv1.StatefulSet](t)(w.admin.AppsV1().StatefulSets(w.ns).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: owned("web", "Prometheus", "cr"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, Replicas: ptr.To(int32(1))},
	}, metav1.CreateOptions{}))
	pod := made[*corev1.Pod](t)(w.admin.CoreV1().Pods(w.ns).Create(t.Context(), &corev1.Pod{ObjectMeta: owned("web-0", "StatefulSet", set.UID), Spec: template.Spec}, metav1.CreateOptions{}))
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}
	made[*corev1.Pod](t)(w.admin.CoreV1().Pods(w.ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))
	made[*corev1.Pod](t)(w.admin.CoreV1().Pods(w.ns).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Spec: template.Spec}, metav1.CreateOptions{}))
	deployment := made[*appsv1.Deployment](t)(w.admin.AppsV1().Deployments(w.ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: owned("rules", "Prometheus", "cr"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{}))
	made[*appsv1.ReplicaSet](t)(w.admin.AppsV1().ReplicaSets(w.ns).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: owned("rules-1", "Deployment", deployment.UID), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template, Replicas: ptr.To(int32(0))},
	}, metav1.CreateOptions{}))
	return w
}

func owned(name, kind string, owner types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "owner", UID: owner}}}
}

// granted returns a client of a user that may list, among the kinds of this package, only these resources.
func (w *family) granted(resources ...string) dynamic.Interface {
	w.Helper()
	ctx := w.Context()
	rule := rbacv1.PolicyRule{APIGroups: []string{"", "apps", "batch"}, Resources: resources, Verbs: []string{"get", "list"}}
	role := made[*rbacv1.ClusterRole](w.T)(w.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-"}, Rules: []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{}))
	made[*rbacv1.ClusterRoleBinding](w.T)(w.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role.Name}},
	}, metav1.CreateOptions{}))
	apiserver.AwaitRights(w.T, apiServer, role.Name, "", rule)
	config := rest.CopyConfig(apiServer)
	config.Impersonate = rest.ImpersonationConfig{UserName: role.Name, Groups: []string{"system:authenticated"}}
	return dynamic.NewForConfigOrDie(config)
}

func TestChildrenAreFoundDownToPods(t *testing.T) {
	w := newFamily(t)
	client := w.granted("deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs", "pods")
	found := read.NewFinder(client).Children(t.Context(), []member.Owner{
		{Kind: schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}, Namespace: w.ns, UID: "cr"},
		{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: w.ns, UID: "childless"},
		{Kind: schema.GroupKind{Kind: "Namespace"}, UID: "cluster-scoped"},
	})
	for uid, all := range found.Of { // this test ignores the health of the children
		for i := range all {
			if all[i].Health != hubv1.HealthProgressing || all[i].State == "" || all[i].UID == "" {
				t.Errorf("%s: %+v", uid, all[i])
			}
			all[i].Health, all[i].State = "", ""
			for j := range all[i].Children {
				if all[i].Children[j].Kind != "Pod" {
					all[i].Children[j].Health, all[i].Children[j].State = "", ""
				}
			}
		}
	}
	want := member.Children{Of: map[types.UID][]member.Child{"cr": {
		{Group: "apps", Kind: "Deployment", Namespace: w.ns, Name: "rules", Children: []member.Child{{Group: "apps", Kind: "ReplicaSet", Namespace: w.ns, Name: "rules-1"}}},
		{Group: "apps", Kind: "StatefulSet", Namespace: w.ns, Name: "web", Children: []member.Child{
			{Kind: "Pod", Namespace: w.ns, Name: "web-0", State: "Pending 0/1 ImagePullBackOff", Containers: []string{"main"}},
		}},
	}}}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreFields(member.Child{}, "UID")); diff != "" {
		t.Error(diff)
	}
}

func TestKindsThatAreNotGrantedAreNamed(t *testing.T) {
	w := newFamily(t)
	found := read.NewFinder(w.granted("statefulsets")).Children(t.Context(), []member.Owner{
		{Kind: schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}, Namespace: w.ns, UID: "cr"},
	})
	if all := found.Of["cr"]; len(all) != 1 || all[0].Name != "web" || all[0].Children != nil {
		t.Errorf("got %+v", all)
	}
	want := []string{
		"cronjobs.batch: not granted to the hub on this cluster", "daemonsets.apps: not granted to the hub on this cluster",
		"deployments.apps: not granted to the hub on this cluster", "jobs.batch: not granted to the hub on this cluster",
		"pods: not granted to the hub on this cluster", "replicasets.apps: not granted to the hub on this cluster",
	}
	if diff := cmp.Diff(want, found.Notes); diff != "" {
		t.Error(diff)
	}
}
