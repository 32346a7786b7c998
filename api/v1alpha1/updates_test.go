package v1alpha1_test

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const typeStays = "connection.type cannot be changed: delete the MemberCluster (its objects stay) and join again"

// updates has test cases of validation rules that compare an object with its earlier state. says is the message of the
// API server. It is empty if the update is accepted.
var updates = map[string]struct {
	kind, before, after, says string
}{
	"a connection keeps its type": {
		kind: "MemberCluster", before: memberSpec, after: "connection: {type: Direct, direct: {kubeconfigSecretRef: {name: other}}}\n" + everywhere,
	},
	"a connection of another type": {
		kind: "MemberCluster", before: memberSpec, after: "connection: {type: Tunnel, tunnel: {}}\n" + everywhere, says: typeStays,
	},
	"a set keeps its bundle": {
		kind: "SetRollout", before: setSpec, after: strings.ReplaceAll(setSpec, "rotors", "wheels"), says: "spec.bundle: Invalid value: bundle is immutable",
	},
	"a binding keeps its object's kind": {
		kind: "ResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v1, kind: Other, name: a, uid: u}",
		says: "spec.objectRef: Invalid value: kind and name of objectRef are immutable",
	},
	"a binding keeps its object's name": {
		kind: "ClusterResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v1, kind: Thing, name: b, uid: u}",
		says: "spec.objectRef: Invalid value: kind and name of objectRef are immutable",
	},
	"a binding takes another version and uid of its object": {
		kind: "ResourceBinding", before: thingRef, after: "objectRef: {apiVersion: example.com/v2, kind: Thing, name: a, uid: other}",
	},
}

func TestUpdating(t *testing.T) {
	c := connect(t)
	for name, tc := range updates {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, "updated", tc.before)
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
					t.Error(err)
				}
			})
			changed := object(t, tc.kind, "updated", tc.after)
			changed.SetResourceVersion(obj.GetResourceVersion())
			err := c.Update(t.Context(), changed, client.DryRunAll)
			switch {
			case tc.says != "":
				wantRefusal(t, err, tc.says)
			case err != nil:
				t.Fatal(err)
			}
		})
	}
}
