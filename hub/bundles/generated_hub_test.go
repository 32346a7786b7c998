package bundles

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const passwords = `apiVersion: v1
kind: Secret
metadata: {name: passwords}
stringData:
  admin: "{{ randAlphaNum 20 }}"
  release: "{{ .Release.Name }}"
{{- if .Values.guest }}
  guest: "{{ randAlphaNum 20 }}"
{{- end }}
---
{apiVersion: v1, kind: Secret, metadata: {name: certificate}, data: {tls.crt: {{ (genSelfSignedCert "rotors" (list) (list) 20).Cert | b64enc }}}}
`

// generates is an operator whose chart generates a password and a certificate of 20 days.
type generates struct {
	*world
	operator *hubv1.FederatedOperator
}

// admin returns the password in the stored Secret, if the Secret has the name of this release.
func (g generates) admin(release string) string {
	g.Helper()
	out := ""
	g.eventually("the Secret of release "+release+" is stored", func() error {
		stored, ok := g.stored()["passwords"]
		if !ok {
			return fmt.Errorf("stored are %v", g.stored())
		}
		of, _, _ := unstructured.NestedString(stored.Manifest.Object, "stringData", "release")
		out, _, _ = unstructured.NestedString(stored.Manifest.Object, "stringData", "admin")
		if of != release || out == "" {
			return fmt.Errorf("the Secret is of release %q", of)
		}
		return nil
	})
	return out
}

func (g generates) secret() client.ObjectKey { return keptKey(g.system, g.operator) }

// request requests other values, as hansectl does.
func (g generates) request() {
	g.Helper()
	g.eventually("other values are requested", func() error {
		must(g.T, g.world.admin.Get(g.Context(), client.ObjectKeyFromObject(g.operator), g.operator))
		g.operator.Annotations = map[string]string{hubv1.RegenerateValuesAnnotation: g.operator.Status.GeneratedValues.ID}
		return g.world.admin.Update(g.Context(), g.operator)
	})
}

// test checks that the values of a chart are kept until a user requests new ones. stop ends the controller. test
// returns the function that ends the controller which then runs.
func (g generates) test(t *testing.T, stop func()) func() {
	t.Helper()
	w, o := g.world, g.operator
	w.archive(rotorChart(t, "1.0.0", map[string]string{"passwords.yaml": passwords}))
	o.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, Namespace: "turbines", GeneratedValues: hubv1.ChartGeneratedRefuse}
	must(t, w.admin.Create(t.Context(), o))
	w.operatorSays(o, hubv1.ReasonNonDeterministicChart, "rotors/templates/passwords.yaml, Secret passwords, field .stringData.admin: ")
	w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.GeneratedValues = "" })
	w.operatorSays(o, hubv1.ReasonStored, "")
	first, id := g.admin("rotors"), o.Status.GeneratedValues.ID
	if is := o.Status.GeneratedValues; is.Values != 2 || is.CertificateExpires == nil {
		t.Errorf("the kept values are %+v", is)
	}
	soon := meta.FindStatusCondition(o.Status.Conditions, hubv1.ConditionCertificateExpiresSoon)
	if soon == nil || soon.Status != metav1.ConditionTrue {
		t.Errorf("the certificate of 20 days has the condition %+v", soon)
	}
	named := func(release string) {
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) { s.Chart.ReleaseName = release })
	}
	same := func(release string) {
		t.Helper()
		if is := g.admin(release); is != first {
			t.Errorf("release %s has the password %q, and %q is kept", release, is, first)
		}
	}
	t.Run("a restart, an upgrade and a return keep the values", func(t *testing.T) {
		stop()
		stop = w.lead()
		named("restarted")
		same("restarted")
		w.archive(rotorChart(t, "1.1.0", map[string]string{"passwords.yaml": passwords}))
		named("upgraded")
		same("upgraded")
		w.archive(rotorChart(t, "1.0.0", map[string]string{"passwords.yaml": passwords}))
		named("returned")
		same("returned")
	})
	t.Run("the values outlive the Secret that keeps them", func(t *testing.T) {
		must(t, w.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.secret().Namespace, Name: g.secret().Name}}))
		named("deleted")
		same("deleted")
		var kept corev1.Secret
		must(t, w.admin.Get(t.Context(), g.secret(), &kept))
		kept.Data = map[string][]byte{"values": []byte("nonsense")}
		must(t, w.admin.Update(t.Context(), &kept))
		named("edited")
		same("edited")
	})
	t.Run("a Secret of another type in place of theirs is reported, and its end is noticed", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.secret().Namespace, Name: g.secret().Name}}
		must(t, w.admin.Delete(t.Context(), secret.DeepCopy()))
		must(t, w.admin.Create(t.Context(), secret))
		named("blocked")
		w.operatorSays(o, hubv1.ReasonValuesNotKept, "a Secret of the type Opaque has this name: delete it")
		must(t, w.admin.Delete(t.Context(), secret))
		named("edited")
		w.operatorSays(o, hubv1.ReasonStored, "")
		same("edited")
	})
	t.Run("a further generated value waits for a request, which replaces all values once", func(t *testing.T) {
		w.edited(o, func(s *hubv1.FederatedOperatorSpec) {
			s.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"guest": true}`)}
			s.Chart.ReleaseName = "more"
		})
		w.operatorSays(o, hubv1.ReasonValuesWouldChange, "Secret turbines/passwords, field /stringData/guest is generated, but has no kept value: the kept values do not suit the chart: "+
			"change the values of the chart so that it generates the same fields as before, or run hansectl operators regenerate rotors")
		same("edited")
		if o.Status.GeneratedValues.ID != id {
			t.Errorf("the id is %s, and was %s", o.Status.GeneratedValues.ID, id)
		}
		g.request()
		second := g.admin("more")
		w.operatorSays(o, hubv1.ReasonStored, "")
		if is := o.Status.GeneratedValues; second == first || is.Values != 3 || is.ID == id {
			t.Errorf("the password was %q and is %q; kept is %+v", first, second, is)
		}
		first = second
		named("again")
		same("again")
	})
	t.Run("each request makes other values, although the chart was rendered before", func(t *testing.T) {
		for range 2 {
			id := o.Status.GeneratedValues.ID
			g.request()
			w.eventually("the request is fulfilled", func() error {
				must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o))
				if o.Status.GeneratedValues.ID == id {
					return fmt.Errorf("the values have the id %s", id)
				}
				return nil
			})
			next := g.admin("again")
			if next == first {
				t.Error("the password is the same")
			}
			first = next
		}
	})
	t.Run("values that do not suit the chart are reported after a crash, so that a user can replace them", func(t *testing.T) {
		w.archive(rotorChart(t, "1.0.0", map[string]string{"passwords.yaml": passwords, "more.yaml": strings.ReplaceAll(strings.Split(passwords, "---")[0], "name: passwords", "name: more")}))
		w.eventually("the status has no values", func() error {
			must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o))
			o.Status.GeneratedValues = nil
			meta.RemoveStatusCondition(&o.Status.Conditions, hubv1.ConditionCertificateExpiresSoon)
			return w.admin.Status().Update(t.Context(), o)
		})
		named("crashed")
		w.operatorSays(o, hubv1.ReasonValuesWouldChange, "Secret turbines/more, field /stringData/admin is generated, but has no kept value")
		if o.Status.GeneratedValues == nil || !meta.IsStatusConditionTrue(o.Status.Conditions, hubv1.ConditionCertificateExpiresSoon) {
			t.Fatalf("the status is %+v", o.Status)
		}
		g.request()
		w.operatorSays(o, hubv1.ReasonStored, "")
	})
	t.Run("the values go with their operator, before its last object goes", func(t *testing.T) {
		described := w.storesVersions(o, "rotors.example.com", "v1")
		must(t, w.admin.Delete(t.Context(), o))
		w.eventually("the Secret with the kept values is gone", func() error {
			if err := w.admin.Get(t.Context(), g.secret(), &corev1.Secret{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the Secret is there: %w", err)
			}
			return nil
		})
		w.stores("-rotors.example.com")
		must(t, w.admin.Delete(t.Context(), described))
		w.stores()
	})
	return stop
}
