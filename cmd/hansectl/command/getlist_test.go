package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	hansemember "github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// podsOf returns a table of pods with an additional column.
func podsOf(column string, rows ...[]string) wire.ListAnswer {
	answer := wire.ListAnswer{Listed: hansemember.Listed{Columns: []hansemember.Column{{Name: "Name"}, {Name: column}, {Name: "IP", Wide: true}}}}
	for _, cells := range rows {
		answer.Rows = append(answer.Rows, hansemember.ListedRow{Namespace: "shop", Name: cells[0], ResourceVersion: cells[1], Cells: cells})
	}
	return answer
}

// threeRegions creates three clusters on the hub. The first cluster by name is not Ready.
func threeRegions(t *testing.T) {
	t.Helper()
	for i, name := range []string{"ap-se-1", "cn-sha-1", "eu-fra-1"} {
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
		m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}}
		apply(t, onHub, m)
		status := metav1.ConditionTrue
		if i == 0 {
			status = metav1.ConditionFalse
		}
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: "Test", LastTransitionTime: metav1.Now()}}
		must(t, onHub.Status().Update(t.Context(), m))
	}
}

func TestGetShowsAllObjectsOfTheClusters(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	threeRegions(t)
	var requests []wire.ListRequest
	var faults map[string]error
	answers := map[string]wire.ListAnswer{}
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var in wire.ListRequest
		if err := json.Unmarshal(body, &in); err != nil || what != wire.List {
			return nil, errors.Join(err, errors.New("that was not asked for"))
		}
		requests = append(requests, in)
		if err := faults[cluster]; err != nil {
			return nil, err
		}
		return answers[cluster], nil
	})
	reset := func() {
		requests, faults = nil, map[string]error{}
		answers["ap-se-1"] = podsOf("Status", []string{"web-1", "Run\x1b[2Jning", "10.1"})
		answers["cn-sha-1"] = podsOf("Ready", []string{"web-0", "1/1", "10.2"}, []string{"web-2", "0/1", "10.3"})
		answers["eu-fra-1"] = wire.ListAnswer{NotServed: true}
		h.took()
	}

	t.Run("in one table, with the columns that any cluster has", func(t *testing.T) {
		reset()
		out, err := h.hansectl("get", "pods", "-n", "shop", "--clusters")
		must(t, err)
		const want = `CLUSTER    NAME    STATUS        READY
ap-se-1    web-1   Run [2Jning   -
cn-sha-1   web-0   -             1/1
cn-sha-1   web-2   -             0/1
warning: eu-fra-1: the cluster does not serve Pod at this version
`
		if out != want {
			t.Errorf("got\n%s", out)
		}
		if got := requests[0]; got != (wire.ListRequest{Version: "v1", Kind: "Pod", Most: views.MaxListed}) {
			t.Errorf("asked for %+v", got)
		}
	})
	t.Run("clusters that are not Ready are asked last", func(t *testing.T) {
		reset()
		names, err := answeringFirst(t.Context(), onHub)
		must(t, err)
		if got := fmt.Sprint(names); got != "[cn-sha-1 eu-fra-1 ap-se-1]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of all namespaces, with all columns", func(t *testing.T) {
		reset()
		out, err := h.hansectl("get", "pods", "-A", "--clusters", "-o", "wide")
		must(t, err)
		wants(t, out, "CLUSTER    NAMESPACE   NAME    STATUS", "IP", "cn-sha-1   shop        web-2", "10.3")
	})
	t.Run("narrowed to a name, labels, a number and a cluster", func(t *testing.T) {
		reset()
		_, err := h.hansectl("get", "pod/web-0", "-n", "shop", "--clusters", "-l", "app=web", "--limit", "7", "--cluster", "cn-sha-1")
		must(t, err)
		if asked := h.took(); asked != "[cn-sha-1 list]" {
			t.Errorf("asked %s", asked)
		}
		if got := requests[0]; got != (wire.ListRequest{Version: "v1", Kind: "Pod", Name: "web-0", LabelSelector: "app=web", Most: 7}) {
			t.Errorf("asked for %+v", got)
		}
	})
	t.Run("as JSON", func(t *testing.T) {
		reset()
		answers["cn-sha-1"] = wire.ListAnswer{Listed: hansemember.Listed{More: true, Objects: []map[string]any{{"kind": "Pod", "text": "\x1b"}}}}
		out, err := h.hansectl("get", "pods", "-n", "shop", "--clusters", "--cluster", "cn-sha-1", "-o", "json")
		must(t, err)
		var shown view.Listed
		must(t, json.NewDecoder(strings.NewReader(out)).Decode(&shown)) // Decode reads the JSON, and not the warning after it
		if !requests[0].Whole || len(shown.Items) != 1 || shown.Items[0].Cluster != "cn-sha-1" || shown.Items[0].Object["kind"] != "Pod" || strings.Contains(out, "\x1b") {
			t.Errorf("got %s", out)
		}
		wants(t, out, "warning: cn-sha-1: the cluster has more than the 1 objects shown")
	})
	t.Run("by name", func(t *testing.T) {
		reset()
		out, err := h.hansectl("get", "pods", "-n", "shop", "--clusters", "-o", "name")
		must(t, err)
		wants(t, out, "pod/web-1\npod/web-0\npod/web-2\n")
	})
	t.Run("a cluster that does not answer is named, and the others are shown", func(t *testing.T) {
		reset()
		faults["ap-se-1"] = errors.New("pods of cluster ap-se-1: the answer is larger than 8 MiB\x1b[2J")
		out, err := h.hansectl("get", "pods", "-n", "shop", "--clusters")
		refused(t, err, "1 cluster could not be asked")
		wants(t, out, "cn-sha-1   web-0", "error: ap-se-1: pods of cluster ap-se-1: the answer is larger than 8 MiB [2J")
	})
	t.Run("without any it says so", func(t *testing.T) {
		reset()
		out, err := h.hansectl("get", "pods", "-n", "shop", "--clusters", "--cluster", "eu-fra-1")
		must(t, err)
		wants(t, out, "No objects of kind Pod found")
	})
	for name, args := range map[string][]string{
		"labels without --clusters":  {"-l", "app=web"},
		"a watch without --clusters": {"-w"},
		"wide without --clusters":    {"-o", "wide"},
		"a watch of JSON":            {"--clusters", "-w", "-o", "json"},
		"too many":                   {"--clusters", "--limit", "501"},
	} {
		t.Run(name+" is wrong usage", func(t *testing.T) {
			_, err := h.hansectl(append([]string{"get", "pods"}, args...)...)
			exits(t, err, 2)
		})
	}
}

func TestAWatchOfListsShowsTheTableAfterAChange(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	answers := []wire.ListAnswer{
		podsOf("Age", []string{"web-0", "1s"}), podsOf("Age", []string{"web-0", "1s"}), podsOf("Age", []string{"web-0", "2s"}, []string{"web-1", "0s"}),
	}
	var out bytes.Buffer
	h := &hub{streams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}}
	g := &get{hub: h, every: time.Nanosecond}
	asked := 0
	must(t, g.watchList(ctx, func() *view.Listed {
		found := view.NewListed(hubv1.ObjectIdentity{Kind: "Pod"}.GroupKind(), false)
		if asked == len(answers) {
			stop()
			return found
		}
		found.Add("a", answers[asked])
		if asked++; asked == 2 {
			found.NotAsked = []view.ClusterNote{{Cluster: "b", Note: "away"}}
			found.Notes = []view.ClusterNote{{Cluster: "c", Note: "it has more"}}
		}
		return found
	}))
	if got := out.String(); strings.Count(got, "CLUSTER") != 2 || strings.Count(got, "web-0") != 2 || strings.Count(got, "web-1") != 1 || strings.Count(got, "error: b: away") != 1 || strings.Count(got, "warning: c: it has more") != 1 {
		t.Errorf("got\n%s", got)
	}
}
