package apiserver

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// AwaitRights waits until the API server grants a user these rules. The rules are for a namespace, or for the cluster
// if namespace is empty. The authorizer learns of roles and bindings by a watch, so that it may refuse a request
// shortly after their creation. Only the first entry of each list in a rule is checked.
func AwaitRights(t *testing.T, admin *rest.Config, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	reviews := kubernetes.NewForConfigOrDie(admin).AuthorizationV1().SubjectAccessReviews()
	for _, rule := range rules {
		asked := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]}
		if len(rule.ResourceNames) > 0 {
			asked.Name = rule.ResourceNames[0]
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: asked}}
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			t.Fatalf("waiting until %s may %s %s in namespace %q: %v", user, asked.Verb, asked.Resource, namespace, err)
		}
	}
}
