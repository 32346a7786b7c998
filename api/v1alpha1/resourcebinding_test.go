package v1alpha1_test

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	thingRef  = "objectRef: {apiVersion: example.com/v1, kind: Thing, name: a, uid: u}\n"
	stateSays = "set absent if and only if state is Absent, evicting if and only if it is Evicting, removal only if it is Present, and no replicas if it is Absent"
)

func bundleRef(bundle string) string {
	return "objectRef: {apiVersion: example.com/v1, kind: Thing, name: a, uid: u, bundle: " + bundle + "}\n"
}

func targeting(targets string) string { return thingRef + "clusters: [" + targets + "]\n" }

var bindingCases = map[string]ruleCase{
	"the least that can be said": {spec: thingRef},
	"everything that can be said": {spec: targeting(`{name: a, state: Present}, {name: b, state: Absent, absent: {reason: NotSelected, uid: u, policy: Orphan}}`) + `
placementRef: {kind: ClusterPlacement, name: p, uid: u, generation: 3}`},

	"an object of a Bundle":                     {spec: bundleRef("{kind: Bundle, namespace: shop, name: web}")},
	"an object of a ClusterBundle":              {spec: bundleRef("{kind: ClusterBundle, name: web}")},
	"an object of a FederatedOperator":          {spec: bundleRef("{kind: FederatedOperator, name: web}")},
	"an object of a bundle without a kind":      {spec: bundleRef("{name: web}"), says: "spec.objectRef.bundle.kind: Required value"},
	"an object of another kind than a bundle":   {spec: bundleRef("{kind: Placement, name: web}"), says: `spec.objectRef.bundle.kind: Unsupported value: "Placement"`},
	"an object of a bundle without a name":      {spec: bundleRef("{kind: Bundle, namespace: shop}"), says: "spec.objectRef.bundle.name: Required value"},
	"an object of a bundle with an empty name":  {spec: bundleRef(`{kind: ClusterBundle, name: ""}`), says: "spec.objectRef.bundle.name in body should be at least 1 chars long"},
	"an object of a bundle with a long name":    {spec: bundleRef("{kind: ClusterBundle, name: " + strings.Repeat("a", 254) + "}"), says: "spec.objectRef.bundle.name: Too long"},
	"an object of a bundle in a long namespace": {spec: bundleRef("{kind: Bundle, name: web, namespace: " + strings.Repeat("a", 64) + "}"), says: "spec.objectRef.bundle.namespace: Too long"},

	"no object":                   {spec: "clusters: []", says: "spec.objectRef: Required value"},
	"an object without uid":       {spec: "objectRef: {apiVersion: v1, kind: A, name: a}", says: "spec.objectRef.uid: Required value"},
	"an object with an empty uid": {spec: `objectRef: {apiVersion: v1, kind: A, name: a, uid: ""}`, says: "spec.objectRef.uid in body should be at least 1 chars long"},
	"an object of no version":     {spec: `objectRef: {apiVersion: "", kind: A, name: a, uid: u}`, says: "spec.objectRef.apiVersion in body should be at least 1 chars long"},
	"an object with a long name":  {spec: "objectRef: {apiVersion: v1, kind: A, uid: u, name: " + strings.Repeat("a", 254) + "}", says: "spec.objectRef.name: Too long"},
	"an object with a long kind":  {spec: "objectRef: {apiVersion: v1, name: a, uid: u, kind: " + strings.Repeat("A", 64) + "}", says: "spec.objectRef.kind: Too long"},
	"an object of a long version": {spec: "objectRef: {kind: A, name: a, uid: u, apiVersion: " + strings.Repeat("v", 318) + "}", says: "spec.objectRef.apiVersion: Too long"},
	"a placement of another kind": {spec: thingRef + "placementRef: {kind: Policy, name: p, uid: u, generation: 3}", says: `spec.placementRef.kind: Unsupported value: "Policy"`},

	"shares of divided replicas":             {spec: targeting(`{name: a, state: Present, replicas: 3}`) + "division: {path: /spec/replicas}"},
	"a share of a cluster that loses it":     {spec: targeting(`{name: a, state: Absent, replicas: 0, absent: {reason: NotSelected, uid: u, policy: Orphan}}`), says: stateSays},
	"a share of a cluster that is evicting":  {spec: targeting(`{name: a, state: Evicting, replicas: 3, evicting: {reason: Evicted}}`)},
	"a share below 0":                        {spec: targeting(`{name: a, state: Present, replicas: -1}`), says: "spec.clusters[0].replicas in body should be greater than or equal to 0"},
	"a division of nothing":                  {spec: thingRef + "division: {}", says: "spec.division.path: Required value"},
	"a division of an empty path":            {spec: thingRef + `division: {path: ""}`, says: "spec.division.path in body should be at least 1 chars long"},
	"a division of a path of 513 characters": {spec: thingRef + "division: {path: " + strings.Repeat("a", 513) + "}", says: "spec.division.path: Too long"},

	"Absent without a reason for it":   {spec: targeting(`{name: a, state: Absent}`), says: "spec.clusters: Invalid value: " + stateSays},
	"Absent with a null":               {spec: targeting(`{name: a, state: Absent, absent: null}`), says: stateSays},
	"Present with a reason to go":      {spec: targeting(`{name: a, state: Present, absent: {reason: NotSelected, uid: u, policy: Delete}}`), says: stateSays},
	"Evicting with replacements":       {spec: targeting(`{name: a, state: Evicting, evicting: {reason: Drained, replacements: [{cluster: b}, {cluster: c, digest: "12"}]}}`)},
	"Evicting without a reason for it": {spec: targeting(`{name: a, state: Evicting}`), says: stateSays},
	"Present with a reason to evict":   {spec: targeting(`{name: a, state: Present, evicting: {reason: Drained}}`), says: stateSays},
	"Evicting with a reason to go":     {spec: targeting(`{name: a, state: Evicting, evicting: {reason: Drained}, absent: {reason: NotSelected, uid: u, policy: Delete}}`), says: stateSays},
	"a replacement twice":              {spec: targeting(`{name: a, state: Evicting, evicting: {reason: Drained, replacements: [{cluster: b}, {cluster: b}]}}`), says: "replacements[1]: Duplicate value"},
	"101 replacements":                 {spec: targeting(`{name: a, state: Evicting, evicting: {reason: Drained, replacements: ` + many(101, "{cluster: eu-%d}") + `}}`), says: "replacements: Too many: 101"},
	"a target without a state":         {spec: targeting(`{name: a}`), says: "spec.clusters[0].state: Required value"},
	"a state that is not there":        {spec: targeting(`{name: a, state: Gone}`), says: `spec.clusters[0].state: Unsupported value: "Gone"`},
	"Absent without the object's uid":  {spec: targeting(`{name: a, state: Absent, absent: {reason: NotSelected, policy: Delete}}`), says: "absent.uid: Required value"},
	"Absent without a policy":          {spec: targeting(`{name: a, state: Absent, absent: {reason: NotSelected, uid: u}}`), says: "absent.policy: Required value"},
	"Absent with a policy of its own":  {spec: targeting(`{name: a, state: Absent, absent: {reason: NotSelected, uid: u, policy: Keep}}`), says: `absent.policy: Unsupported value: "Keep"`},
	"a reason of 65 characters":        {spec: targeting(`{name: a, state: Absent, absent: {uid: u, policy: Delete, reason: ` + strings.Repeat("R", 65) + `}}`), says: "absent.reason: Too long"},
	"a target of 64 characters":        {spec: targeting(`{state: Present, name: ` + strings.Repeat("a", 64) + `}`), says: "spec.clusters[0].name: Too long"},
	"a target twice":                   {spec: targeting(`{name: a, state: Present}, {name: a, state: Present}`), says: "spec.clusters[1]: Duplicate value"},
	"the most entries of a decision":   {spec: thingRef + "clusters: " + many(hubv1.MaxEntries, "{name: eu-%d, state: Present}")},
	"one entry more":                   {spec: thingRef + "clusters: " + many(hubv1.MaxEntries+1, "{name: eu-%d, state: Present}"), says: fmt.Sprintf("spec.clusters: Too many: %d", hubv1.MaxEntries+1)},
}
