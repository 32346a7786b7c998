package views_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

func configMap(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"colour": value},
	}}
}

func TestTheRightToReadCopies(t *testing.T) {
	w := newWorld(t)
	w.members[here].live, w.members[elsewhere].live = configMap("red"), configMap("blue")
	reader := w.user("reader", getOne, viewHere)
	tests := map[string]struct {
		token   string
		cluster string
		object  wire.Object
		refused func(error) bool // nil: the copy is shown
		says    string
	}{
		"who may view the member and get the object": {reader, here, w.object("ConfigMap", "settings"), nil, ""},
		"who has a token for the hub alone": {
			w.user("narrow", getOne, viewHere, wire.Audience), here, w.object("ConfigMap", "settings"), nil, "",
		},
		"who has no token":                    {"", here, w.object("ConfigMap", "settings"), apierrors.IsUnauthorized, "Hanse-Token"},
		"who has a token that is not known":   {"not-a-token", here, w.object("ConfigMap", "settings"), apierrors.IsUnauthorized, "does not know the token"},
		"who has a token for somebody else":   {w.user("other", getOne, viewHere, "vault"), here, w.object("ConfigMap", "settings"), apierrors.IsUnauthorized, ""},
		"who may view another member":         {reader, elsewhere, w.object("ConfigMap", "settings"), apierrors.IsForbidden, "needs the verb view"},
		"who may get another object":          {reader, here, w.object("Secret", "password"), apierrors.IsForbidden, "may not get"},
		"who may view the member alone":       {w.user("viewer", nil, viewAll), here, w.object("ConfigMap", "settings"), apierrors.IsForbidden, "may not get"},
		"who may get the object alone":        {w.user("getter", getAll, nil), here, w.object("ConfigMap", "settings"), apierrors.IsForbidden, "needs the verb view"},
		"who asks for what is not there":      {w.user("curious", getAll, viewAll), here, w.object("ConfigMap", "nothing"), apierrors.IsForbidden, "may not get"},
		"who asks for what is not sent there": {w.user("astray", getAll, viewAll), here, w.object("ConfigMap", "far"), apierrors.IsForbidden, "does not send it"},
		"who asks for nothing":                {reader, here, wire.Object{}, apierrors.IsBadRequest, "names no object"},
		"who asks for a member of another replica": {
			w.user("roamer", getAll, viewAll), elsewhere, w.object("ConfigMap", "settings"), nil, "",
		},
		"who asks for a member of no replica": {
			w.user("early", getAll, viewAll), nowhere, w.object("ConfigMap", "settings"), apierrors.IsServiceUnavailable, "no replica",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var answer wire.CopyAnswer
			err := w.ask(tc.token, tc.cluster, wire.Copy, wire.CopyRequest{Object: tc.object}, &answer)
			if tc.refused != nil {
				if !tc.refused(err) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			must(t, err)
			if diff := cmp.Diff(w.members[tc.cluster].live.Object, answer.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("the copy is asked for by what the binding says of it", func(t *testing.T) {
		want := member.ViewIntent{GVK: configMap("").GroupVersionKind(), Owner: w.id("ConfigMap", "settings"), OwnerUID: "uid-settings", ConfirmedUID: "copy-settings"}
		if diff := cmp.Diff(want, w.members[here].asked[0]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAKindThatIsNotKnownIsToldFromOneThatCannotBeLookedUp(t *testing.T) {
	w := newWorld(t)
	w.members[here].live = configMap("red")
	reader := w.user("reader", getAll, viewAll)
	down := apierrors.NewServiceUnavailable("10.0.0.1 is not ready")
	tests := map[string]struct {
		err     error
		refused func(error) bool
		says    string
	}{
		"its definition is gone":                  {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, apierrors.IsForbidden, "may not get"},
		"its group cannot be asked for":           {fmt.Errorf("discovering: %w", down), apierrors.IsServiceUnavailable, "cannot find the resource of ConfigMap now (its API server answers ServiceUnavailable)"},
		"the hub's API server does not answer it": {errors.New("dial 10.0.0.1: refused"), apierrors.IsServiceUnavailable, "does not answer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w.kinds.err = tc.err
			err := w.ask(reader, here, wire.Copy, wire.CopyRequest{Object: w.object("ConfigMap", "settings")}, nil)
			if !tc.refused(err) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "10.0.0.1") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheHubNeedNotServeTheKindOfAnObjectOfABundle(t *testing.T) {
	w := newWorld(t)
	w.members[here].live = configMap("red")
	w.kinds.err = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	var b hubv1.ResourceBinding
	must(t, hub.Get(t.Context(), w.id("ConfigMap", "settings").BindingKey(), &b))
	b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: w.ns, Name: "web"}
	must(t, hub.Update(t.Context(), &b))
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	var answer wire.CopyAnswer
	must(t, w.ask(w.user("reader", getAll, viewAll), here, wire.Copy, request, &answer))
	if diff := cmp.Diff(w.members[here].live.Object, answer.Object); diff != "" {
		t.Error(diff)
	}
	if err := w.ask(w.user("viewer", nil, viewAll), here, wire.Copy, request, nil); !apierrors.IsForbidden(err) {
		t.Errorf("a user who may not get the object gets %v", err)
	}
}

func TestACopyThatIsNotTheHubsIsNotShown(t *testing.T) {
	w := newWorld(t)
	w.members[here].refusal = &member.Outcome{Reason: hubv1.ReasonAlreadyExists, Message: "is not Hanse's"}
	var answer wire.CopyAnswer
	must(t, w.ask(w.user("reader", getAll, viewAll), here, wire.Copy, wire.CopyRequest{Object: w.object("ConfigMap", "settings")}, &answer))
	if diff := cmp.Diff(wire.CopyAnswer{Refused: &wire.Reason{Reason: hubv1.ReasonAlreadyExists, Message: "is not Hanse's"}}, answer); diff != "" {
		t.Error(diff)
	}
}

func secret(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
		"metadata": map[string]any{"name": "password", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"a":"aHVudGVyMg=="}}`, "team": "a", hubv1.DigestAnnotation: "d",
		}},
		"status": map[string]any{},
	}}
}

func TestValuesOfSecretsAreNotShown(t *testing.T) {
	w := newWorld(t)
	before, after := secret(map[string]any{"a": "aHVudGVyMg==", "b": "b25l", "c": "Z29uZQ=="}), secret(map[string]any{"a": "aHVudGVyMg==", "b": "dHdv", "d": "bmV3"})
	w.members[here].live = before
	w.members[here].preview = member.Preview{Before: before, After: after}
	w.intent = func(hubv1.ObjectIdentity, []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
		return member.ApplyIntent{Manifest: after}, nil, nil
	}
	token, object := w.user("reader", getAll, viewAll), w.object("Secret", "password")

	var shown wire.CopyAnswer
	must(t, w.ask(token, here, wire.Copy, wire.CopyRequest{Object: object}, &shown))
	if diff := cmp.Diff(map[string]any{"a": "***", "b": "***", "c": "***"}, shown.Object["data"]); diff != "" {
		t.Error(diff)
	}
	annotations, _, _ := unstructured.NestedStringMap(shown.Object, "metadata", "annotations")
	if diff := cmp.Diff(map[string]string{"team": "***", "kubectl.kubernetes.io/last-applied-configuration": "***", hubv1.DigestAnnotation: "d"}, annotations); diff != "" {
		t.Error(diff)
	}
	var compared wire.DiffAnswer
	// The diff shows the Secret on the member and the Secret that the hub would write. Each key that both Secrets have
	// looks changed, even if its values are equal. Otherwise a user could find the member's value by guessing.
	must(t, w.ask(token, here, wire.Diff, wire.DiffRequest{Object: object}, &compared))
	state := func(value string, data map[string]any) map[string]any {
		metadata := map[string]any{"name": "password", "annotations": map[string]any{"team": value, "kubectl.kubernetes.io/last-applied-configuration": value}}
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}
	}
	want := wire.DiffAnswer{
		Before: state("*** (before)", map[string]any{"a": "*** (before)", "b": "*** (before)", "c": "***"}),
		After:  state("*** (after)", map[string]any{"a": "*** (after)", "b": "*** (after)", "d": "***"}),
	}
	if diff := cmp.Diff(want, compared); diff != "" {
		t.Error(diff)
	}
	w.members[here].preview = member.Preview{Before: before, After: before, InSync: true}
	var same wire.DiffAnswer
	must(t, w.ask(token, here, wire.Diff, wire.DiffRequest{Object: object}, &same))
	all3 := state("***", map[string]any{"a": "***", "b": "***", "c": "***"})
	if diff := cmp.Diff(wire.DiffAnswer{Before: all3, After: all3}, same); diff != "" {
		t.Error(diff)
	}
	all, err := json.Marshal([]any{shown, compared, same})
	must(t, err)
	for _, value := range []string{"aHVudGVyMg", "b25l", "dHdv", "Z29uZQ", "bmV3"} {
		if strings.Contains(string(all), value) {
			t.Errorf("%s is in the answers: %s", value, all)
		}
	}
	if before.Object["data"].(map[string]any)["b"] != "b25l" {
		t.Error("what the member gave was changed")
	}
}

func TestDiff(t *testing.T) {
	w := newWorld(t)
	var tried []hubv1.OverridePolicyObject
	stop := &member.Outcome{Reason: hubv1.ReasonSuspended}
	w.intent = func(_ hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
		tried = policies
		return member.ApplyIntent{Manifest: configMap("blue")}, stop, nil
	}
	w.members[here].preview = member.Preview{Before: configMap("red"), After: configMap("blue")}
	policyWith := func(rules ...string) json.RawMessage {
		return json.RawMessage(`{"apiVersion": "hanse.dev/v1alpha1", "kind": "OverridePolicy", "metadata": {"namespace": "` + w.ns + `", "name": "p"}, "spec": {
		  "resourceSelectors": [{"kind": "ConfigMap"}], "rules": [` + strings.Join(rules, ", ") + `]}}`)
	}
	ruleAt := func(i int, path string) string {
		return fmt.Sprintf(`{"name": "r-%d", "patches": [{"op": "add", "path": %q, "value": "blue"}]}`, i, path)
	}
	policy := policyWith(ruleAt(0, "/data/colour"))
	author := w.user("author", slices.Concat(getAll, mayOverride), viewAll)
	reader := w.user("reader", getAll, viewAll)
	request := func(policies ...json.RawMessage) wire.DiffRequest {
		return wire.DiffRequest{Object: w.object("ConfigMap", "settings"), Policies: policies}
	}
	t.Run("why nothing is written now is told beside the difference", func(t *testing.T) {
		var answer wire.DiffAnswer
		must(t, w.ask(reader, here, wire.Diff, request(), &answer))
		want := wire.DiffAnswer{Before: configMap("red").Object, After: configMap("blue").Object, Refused: &wire.Reason{Reason: hubv1.ReasonSuspended}}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the copy of the next revision is asked for without policies", func(t *testing.T) {
		in := request()
		in.Next = true
		var answer wire.DiffAnswer
		must(t, w.ask(reader, here, wire.Diff, in, &answer))
		if colour := w.members[here].previewed.Manifest.Object["data"]; !cmp.Equal(colour, map[string]any{"colour": "next"}) || answer.Refused != nil {
			t.Errorf("the member is asked about %v, refused: %v", colour, answer.Refused)
		}
		in.Policies = []json.RawMessage{policy}
		if err := w.ask(author, here, wire.Diff, in, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("with a policy: got %v", err)
		}
	})
	t.Run("other policies may be tried by who may make them", func(t *testing.T) {
		must(t, w.ask(author, here, wire.Diff, request(policy), &wire.DiffAnswer{}))
		if len(tried) != 1 || tried[0].GetName() != "p" {
			t.Errorf("got %v", tried)
		}
		tried = nil
		if err := w.ask(reader, here, wire.Diff, request(policy), nil); !apierrors.IsForbidden(err) || tried != nil {
			t.Errorf("got %v, tried %v", err, tried)
		}
	})
	t.Run("whoever lacks a right that the webhook asks for may not try", func(t *testing.T) {
		for i, missing := range mayOverride {
			tried = nil
			token := w.user(fmt.Sprintf("lacks-%s", missing.Verbs[0]), slices.Concat(getAll, mayOverride[:i], mayOverride[i+1:]), viewAll)
			err := w.ask(token, here, wire.Diff, request(policy), nil)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not "+missing.Verbs[0]) || tried != nil {
				t.Errorf("without %s: got %v, tried %v", missing.Verbs[0], err, tried)
			}
		}
	})
	t.Run("who changes what others may do must be allowed to on the hub", func(t *testing.T) {
		w.place("Role", "powers", here)
		roles := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "update"}}
		may := roles
		may.Verbs = []string{"escalate"}
		plain, powerful := w.user("plain", append(mayOverride, roles), viewAll), w.user("powerful", append(mayOverride, roles, may), viewAll)
		in := wire.DiffRequest{Object: w.object("Role", "powers"), Policies: []json.RawMessage{policy}}
		in.Object.Group = rbacv1.GroupName
		if err := w.ask(plain, here, wire.Diff, in, nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not escalate") {
			t.Errorf("got %v", err)
		}
		must(t, w.ask(powerful, here, wire.Diff, in, &wire.DiffAnswer{}))
	})
	t.Run("a policy that the API server would not take is refused, to those who might make it", func(t *testing.T) {
		var many []string
		for i := range 65 {
			many = append(many, ruleAt(i, "/data/colour"))
		}
		for says, policies := range map[string][]json.RawMessage{
			"at most 64 policies":       slices.Repeat([]json.RawMessage{policy}, 65),
			"spec.rules: Too many":      {policyWith(many...)},
			"spec.rules: Required":      {policyWith()},
			"spec.rules[0].patches[0]":  {policyWith(ruleAt(0, "/metadata/name"))},
			"must have at most 64 item": {policyWith(many...)},
		} {
			tried = nil
			if err := w.ask(author, here, wire.Diff, request(policies...), nil); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) || tried != nil {
				t.Errorf("%s: got %v, tried %v", says, err, tried)
			}
		}
	})
	t.Run("what is no policy for the object is refused", func(t *testing.T) {
		for _, text := range []string{
			`{"apiVersion": "hanse.dev/v1alpha1", "kind": "Placement", "metadata": {"name": "p"}}`,
			`{"apiVersion": "hanse.dev/v1alpha1", "kind": "OverridePolicy", "metadata": {"namespace": "elsewhere", "name": "p"}}`,
			`{"apiVersion": "hanse.dev/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": 7}}`,
			`7`,
		} {
			if err := w.ask(author, here, wire.Diff, request(json.RawMessage(text)), nil); !apierrors.IsBadRequest(err) {
				t.Errorf("%s: got %v", text, err)
			}
		}
	})
	t.Run("what is not Hanse's is shown to who may adopt it", func(t *testing.T) {
		w.members[here].preview.Unadopted = true
		defer func() { w.members[here].preview.Unadopted = false }()
		var answer wire.DiffAnswer
		must(t, w.ask(reader, here, wire.Diff, request(), &answer))
		if answer.Before != nil || answer.After != nil || answer.Refused == nil ||
			answer.Refused.Reason != hubv1.ReasonAlreadyExists || !strings.Contains(answer.Refused.Message, "verb adopt") {
			t.Errorf("without the right: got %+v", answer)
		}
		adopter := w.user("adopter", getAll, slices.Concat(viewAll, adoptHere))
		answer = wire.DiffAnswer{}
		must(t, w.ask(adopter, here, wire.Diff, request(), &answer))
		want := wire.DiffAnswer{
			Before: configMap("red").Object, After: configMap("blue").Object, Unadopted: true,
			Refused: &wire.Reason{Reason: hubv1.ReasonSuspended},
		}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what cannot be rendered has a reason alone", func(t *testing.T) {
		w.intent = func(hubv1.ObjectIdentity, []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
			return member.ApplyIntent{}, &member.Outcome{Reason: hubv1.ReasonOverrideInvalid, Message: "no"}, nil
		}
		var answer wire.DiffAnswer
		must(t, w.ask(reader, here, wire.Diff, request(), &answer))
		if diff := cmp.Diff(wire.DiffAnswer{Refused: &wire.Reason{Reason: hubv1.ReasonOverrideInvalid, Message: "no"}}, answer); diff != "" {
			t.Error(diff)
		}
	})
}

func TestChildren(t *testing.T) {
	w := newWorld(t)
	found := []member.Child{{Group: "apps", Kind: "StatefulSet", Name: "web", Children: []member.Child{{Kind: "Pod", Name: "web-0", State: "Running 1/1"}}}}
	w.members[here].children = member.Children{Of: map[types.UID][]member.Child{"copy-settings": found}, Notes: []string{"jobs.batch: not granted"}}
	token, settings := w.user("reader", getAll, viewAll), w.object("ConfigMap", "settings")

	var answer wire.ChildrenAnswer
	must(t, w.ask(token, here, wire.Children, wire.ChildrenRequest{Objects: []wire.Object{w.object("Secret", "password"), settings}}, &answer))
	want := wire.ChildrenAnswer{Notes: []string{"jobs.batch: not granted"}, Objects: []wire.ObjectChildren{
		{Object: w.object("Secret", "password"), UID: "copy-password"}, {Object: settings, UID: "copy-settings", Children: found},
	}}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Error(diff)
	}
	t.Run("what may not be read is refused alone, in the words for what is not there", func(t *testing.T) {
		token := w.user("single", getOne, viewAll)
		w.members[here].owners = nil
		refused := func(kind, name string) wire.ObjectChildren {
			return wire.ObjectChildren{Object: w.object(kind, name), Refused: &wire.Reason{Reason: "Forbidden", Message: fmt.Sprintf(
				"%s %q is forbidden: user \"system:serviceaccount:%s:single\" may not get %s on the hub, or the hub does not send it to cluster %s",
				kind, name, w.ns, w.id(kind, name), here)}}
		}
		var answer wire.ChildrenAnswer
		must(t, w.ask(token, here, wire.Children, wire.ChildrenRequest{
			Objects: []wire.Object{w.object("Secret", "password"), settings, w.object("Secret", "nothing")},
		}, &answer))
		want := wire.ChildrenAnswer{Notes: []string{"jobs.batch: not granted"}, Objects: []wire.ObjectChildren{
			refused("Secret", "password"), {Object: settings, UID: "copy-settings", Children: found}, refused("Secret", "nothing"),
		}}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Error(diff)
		}
		if asked := w.members[here].owners; len(asked) != 1 || asked[0].UID != "copy-settings" {
			t.Errorf("the member is asked for %v", asked)
		}
	})
	t.Run("more than 50 are too many", func(t *testing.T) {
		err := w.ask(token, here, wire.Children, wire.ChildrenRequest{Objects: make([]wire.Object, 51)}, nil)
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRequestsOfUsersAreBounded(t *testing.T) {
	w := newWorld(t)
	token := w.user("reader", getAll, viewAll)
	request := wire.CopyRequest{Object: w.object("ConfigMap", "settings")}
	t.Run("a large request is refused", func(t *testing.T) {
		err := w.send(w.replicas[here].Annotations()[views.CertificateAnnotation], token, here, wire.Copy, make([]byte, 1<<20), nil)
		if !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one with unknown fields is refused", func(t *testing.T) {
		err := w.ask(token, here, wire.Copy, map[string]any{"verb": "delete"}, nil)
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another server than a replica gets no token", func(t *testing.T) {
		err := w.send(w.replicas[elsewhere].Annotations()[views.CertificateAnnotation], token, here, wire.Copy, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "no certificate that a replica of the hub names") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a member that hangs holds up those who look at it and nobody else", func(t *testing.T) {
		w.members[here].wait = make(chan struct{})
		var waiting sync.WaitGroup
		refused := make(chan error, 6)
		for range 6 {
			waiting.Go(func() { refused <- w.ask(token, here, wire.Copy, request, &wire.CopyAnswer{}) })
		}
		for range 2 {
			if err := <-refused; !apierrors.IsTooManyRequests(err) {
				t.Errorf("got %v", err)
			}
		}
		w.members[elsewhere].live = configMap("blue")
		must(t, w.ask(token, elsewhere, wire.Copy, request, &wire.CopyAnswer{}))
		close(w.members[here].wait)
		waiting.Wait()
	})
}
