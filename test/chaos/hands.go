package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hand carries out what people do by hand to objects that belong to Hanse.
func (r *run) hand(ctx context.Context, s Step) error {
	switch s.Action {
	case Drift:
		r.noteHand(s.Target)
		patch := fmt.Sprintf(`{"metadata":{"labels":{"chaos":null}},%q:{"value":%s}}`, contentField(s.Key.Kind),
			map[string]string{"ConfigMap": `"drift"`, "Secret": `"ZHJpZnQ="`, "Widget": "0"}[s.Key.Kind])
		return client.IgnoreNotFound(r.site.members[s.Target].Patch(ctx, object(s.Key, 0, ""), client.RawPatch(types.MergePatchType, []byte(patch))))
	case Destroy:
		r.noteHand(s.Target)
		return client.IgnoreNotFound(r.site.members[s.Target].Delete(ctx, object(s.Key, 0, "")))
	case Unbind:
		key := bindingOf(s.Key)
		return client.IgnoreNotFound(r.users.emergency.Delete(ctx, &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	case Forget:
		return r.forget(ctx, s.Value)
	case Undefine:
		r.noteHand(s.Target)
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + WidgetKind.Group}}
		if err := client.IgnoreNotFound(r.site.members[s.Target].Delete(ctx, crd)); err != nil {
			return err
		}
		return r.define(ctx, s.Target)
	}
	return fmt.Errorf("no hand does %s", s)
}

// forget deletes Secrets of revisions or of Bundles, or the list of epochs.
func (r *run) forget(ctx context.Context, variant int64) error {
	of := client.InNamespace(hubv1.SystemNamespace)
	switch variant % 3 {
	case 0:
		r.expected.forgot = true
		return r.users.admin.DeleteAllOf(ctx, &corev1.Secret{}, of, client.HasLabels{hubv1.RevisionLabel})
	case 1:
		return r.users.admin.DeleteAllOf(ctx, &corev1.Secret{}, of, client.HasLabels{hubv1.ManifestLabel})
	}
	epochs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubv1.EpochsConfigMap}}
	return client.IgnoreNotFound(r.users.admin.Delete(ctx, epochs))
}

// define applies the definition of Widgets on a member. The definition of before may still be going.
func (r *run) define(ctx context.Context, member string) error {
	raw, err := os.ReadFile(r.site.widgetCRD)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return until(ctx, 30*time.Second, func() error {
		var crd apiextensionsv1.CustomResourceDefinition
		err := r.site.members[member].Get(ctx, types.NamespacedName{Name: "widgets." + WidgetKind.Group}, &crd)
		if err == nil && crd.DeletionTimestamp != nil {
			return errors.New("the definition is still going")
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		return r.fleet.Members[member].ApplyCRD(ctx, raw, "chaos")
	})
}
