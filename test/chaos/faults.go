package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// fault begins or ends a fault.
func (r *run) fault(ctx context.Context, s Step) error {
	if slices.Contains(Members, s.Target) {
		if s.Fault == mutate || s.Fault == swap {
			r.noteHand(s.Target)
		}
	} else {
		r.noteHub()
	}
	begin, end := r.ofFault(s)
	if s.Action == Begin {
		return begin(ctx)
	}
	return end(ctx)
}

// ofFault returns what begins and what ends the fault of a step.
func (r *run) ofFault(s Step) (begin, end func(ctx context.Context) error) {
	lab := func(args ...string) func(ctx context.Context) error {
		return func(ctx context.Context) error { return r.lab(ctx, args...) }
	}
	signal := func(sent syscall.Signal) func(ctx context.Context) error {
		return func(context.Context) error {
			if err := r.servers.replicas.get(s.Target).Signal(sent); !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			return nil
		}
	}
	switch s.Fault {
	case killAPI:
		return lab("kill", s.Target), lab("start", s.Target)
	case stallAPI:
		return lab("pause", s.Target), lab("resume", s.Target)
	case stallEtcd:
		return lab("pause", s.Target, "--component", "etcd"), lab("resume", s.Target, "--component", "etcd")
	case kill: // the process starts again by itself
		return signal(syscall.SIGKILL), func(context.Context) error { return nil }
	case stall:
		return signal(syscall.SIGSTOP), signal(syscall.SIGCONT)
	case swap:
		set := func(of string) func(ctx context.Context) error {
			return func(ctx context.Context) error { return r.setKubeconfig(ctx, s.Target, r.site.kubeconfigs[of]) }
		}
		return set(next(s.Target)), set(s.Target)
	case mutate:
		return func(ctx context.Context) error { return r.servers.mutator.install(ctx, r.site.members[s.Target]) },
			func(ctx context.Context) error { return r.servers.mutator.remove(ctx, r.site.members[s.Target]) }
	}
	if lie, ok := strings.CutPrefix(string(s.Fault), "lie "); ok {
		tell := func(lie string) func(ctx context.Context) error {
			return func(context.Context) error { r.servers.liar.lie.Store(lie); return nil }
		}
		return tell(lie), tell("")
	}
	return func(ctx context.Context) error {
			return r.fleet.Fault(ctx, s.Target, strings.Fields(string(s.Fault))...)
		},
		func(ctx context.Context) error { return r.fleet.Fault(ctx, s.Target, "none") }
}

// next returns the member after this one.
func next(member string) string {
	return Members[(slices.Index(Members, member)+1)%len(Members)]
}

func (r *run) setKubeconfig(ctx context.Context, member string, kubeconfig []byte) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{"kubeconfig": kubeconfig}})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: member}}
	return r.users.admin.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
}

// healAll ends all faults, also those whose end failed, and waits until all API servers and replicas are ready.
func (r *run) healAll(ctx context.Context) error {
	r.servers.liar.lie.Store("")
	for _, name := range append([]string{r.fleet.Hub.Name}, Members...) {
		// The commands fail if the component runs, which the check below finds out.
		_, _ = r.fleet.LabCommand(ctx, "resume", name)
		_, _ = r.fleet.LabCommand(ctx, "start", name)
	}
	_, _ = r.fleet.LabCommand(ctx, "resume", r.fleet.Hub.Name, "--component", "etcd")
	for _, h := range r.servers.replicas.all() {
		_ = h.Signal(syscall.SIGCONT)
	}
	if err := until(ctx, time.Minute, func() error {
		err := r.users.admin.List(ctx, &hubv1.MemberClusterList{})
		for _, m := range Members {
			err = errors.Join(err, r.site.members[m].List(ctx, &corev1.NamespaceList{}, client.Limit(1)))
		}
		return err
	}); err != nil {
		return fmt.Errorf("waiting for the API servers: %w", err)
	}
	for _, m := range Members {
		if err := until(ctx, time.Minute, func() error {
			return errors.Join(
				r.fleet.Fault(ctx, m, "none"), r.setKubeconfig(ctx, m, r.site.kubeconfigs[m]), r.servers.mutator.remove(ctx, r.site.members[m]), r.define(ctx, m),
				r.patchMember(ctx, m, map[string]any{"spec": map[string]any{"unschedulable": nil}}),
			)
		}); err != nil {
			return fmt.Errorf("ending the faults of %s: %w", m, err)
		}
	}
	return r.servers.replicas.ready(ctx)
}

func (r *run) hubEtcd() string { return filepath.Join(r.fleet.Dir, "_etcd", "hub", "data") }

// backUp copies the data of the hub's etcd.
func (r *run) backUp(ctx context.Context) error {
	if err := os.RemoveAll(r.hubEtcd() + ".backup"); err != nil {
		return err
	}
	r.noteHub()
	if _, err := r.fleet.LabCommand(ctx, "pause", r.fleet.Hub.Name, "--component", "etcd"); err != nil {
		return err
	}
	err := os.CopyFS(r.hubEtcd()+".backup", os.DirFS(r.hubEtcd()))
	_, resumed := r.fleet.LabCommand(ctx, "resume", r.fleet.Hub.Name, "--component", "etcd")
	return errors.Join(err, resumed)
}

// restore puts the copy back, as docs/backup.md says: it stops the hub first. Then it records what the restored hub may
// delete: copies of objects that it has, copies whose removal had begun at the time of the backup, and copies of
// objects that its Bundle may have lost. The hub may have deleted some of them after the backup: it then makes them
// again before it decides to delete them. All other copies are unclaimed, and the hub must not delete them. A copy on a
// cluster that no target of a binding names is unclaimed, too, if the object or the cluster's label goes before the hub
// makes the target.
func (r *run) restore(ctx context.Context) error {
	r.noteHub()
	if err := r.servers.replicas.stop(); err != nil {
		return err
	}
	defer r.servers.replicas.start()
	for _, step := range []func() error{
		func() error { return r.lab(ctx, "kill", r.fleet.Hub.Name) },
		func() error { return r.lab(ctx, "kill", r.fleet.Hub.Name, "--component", "etcd") },
		func() error { return os.RemoveAll(r.hubEtcd()) },
		func() error { return os.Rename(r.hubEtcd()+".backup", r.hubEtcd()) },
		func() error { return r.lab(ctx, "start", r.fleet.Hub.Name, "--component", "etcd") },
		func() error { return r.lab(ctx, "start", r.fleet.Hub.Name) },
		func() error {
			return until(ctx, time.Minute, func() error { return r.users.admin.List(ctx, &hubv1.MemberClusterList{}) })
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("restoring the hub: %w", err)
		}
	}
	var s *Snapshot
	if err := until(ctx, time.Minute, func() (err error) { s, err = r.snapshot(ctx); return err }); err != nil {
		return fmt.Errorf("reading the restored hub: %w", err)
	}
	var bindings []hubv1.ResourceBinding
	if err := until(ctx, time.Minute, func() (err error) { bindings, err = r.bindings(ctx); return err }); err != nil {
		return fmt.Errorf("reading the restored hub: %w", err)
	}
	type target struct {
		object Key
		member string
	}
	bound := map[target]bool{}
	for _, b := range bindings {
		for _, t := range b.Spec.Clusters {
			bound[target{boundKey(&b), t.Name}] = true
			if b.DeletionTimestamp != nil || t.State != hubv1.TargetPresent || b.Namespace == bundled {
				r.expected.causes.Add(time.Now(), t.Name, boundKey(&b), "restore")
			}
		}
	}
	r.expected.restored = true
	r.expected.unclaimed = Copies{}
	for member, want := range Expected(s) {
		var have map[Key]Copy
		if err := until(ctx, time.Minute, func() (err error) { have, err = r.copiesOn(ctx, member); return err }); err != nil {
			return err
		}
		r.expected.unclaimed[member] = map[Key]Copy{}
		for k, c := range have {
			if w, wanted := want[k]; !wanted || !bound[target{k, member}] || w.Owner != "" && w.Owner != c.Owner {
				r.expected.unclaimed[member][k] = c
			}
		}
		for k := range s.Objects {
			if k.Namespace != kept {
				r.expected.causes.Add(time.Now(), member, k, "restore")
			}
		}
	}
	return nil
}

func (r *run) lab(ctx context.Context, args ...string) error {
	_, err := r.fleet.LabCommand(ctx, args...)
	return err
}

// mutator is a mutating webhook, which sets the field note of Widgets.
type mutator struct{ *httptest.Server }

const mutatorName = "mutator.chaos.hanse.dev"

func newMutator() mutator {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch), Patch: []byte(`[{"op":"add","path":"/spec/note","value":"mutated"}]`),
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return mutator{s}
}

func (m mutator) install(ctx context.Context, member client.Client) error {
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: mutatorName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: mutatorName, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](2),
			SideEffects:   ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			ClientConfig:  admissionregistrationv1.WebhookClientConfig{URL: ptr.To(m.URL), CABundle: certificateOf(m.Server)},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{WidgetKind.Group}, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
			}},
		}},
	}
	if err := member.Create(ctx, hook); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (m mutator) remove(ctx context.Context, member client.Client) error {
	return client.IgnoreNotFound(member.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatorName}}))
}
