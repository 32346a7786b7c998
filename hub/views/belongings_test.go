package views_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// These are the rights of users who read events and logs.
var (
	listEvents = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}}
	getLogs    = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}}
)

// grown gives the fake member a StatefulSet with two pods, as if controllers had made them for the copy of an object.
func (w *world) grown(name string) *fakeMember {
	pod := func(name string, containers ...string) member.Child {
		return member.Child{Kind: "Pod", Namespace: w.ns, Name: name, UID: types.UID("uid-" + name), Containers: containers}
	}
	m := w.members[here]
	m.children = member.Children{Notes: []string{"jobs: not granted"}}
	m.children.Of = map[types.UID][]member.Child{types.UID("copy-" + name): {{
		Group: "apps", Kind: "StatefulSet", Namespace: w.ns, Name: "web", Children: []member.Child{pod("web-0", "init", "main"), pod("web-1", "main")},
	}}}
	return m
}

func TestEventsAreThoseOfTheCopyAndWhatBelongsToIt(t *testing.T) {
	w := newWorld(t)
	m := w.grown("settings")
	m.events = member.Events{Items: []member.Event{{Kind: "Pod", Name: "web-0", Reason: "Failed"}}, More: true}
	in := wire.EventsRequest{Object: w.object("ConfigMap", "settings")}
	may := w.user("may", append([]rbacv1.PolicyRule{listEvents}, getAll...), viewAll)
	var out wire.EventsAnswer
	must(t, w.ask(may, here, wire.Events, in, &out))
	want := wire.EventsAnswer{Events: m.events.Items, More: true, Notes: m.children.Notes}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	about := []member.Involved{
		{Kind: "Namespace", Name: w.ns}, {Kind: "ConfigMap", Name: "settings", UID: "copy-settings"}, {Group: "apps", Kind: "StatefulSet", Name: "web"},
		{Kind: "Pod", Name: "web-0"}, {Kind: "Pod", Name: "web-1"},
	}
	if diff := cmp.Diff(about, m.about); diff != "" {
		t.Error(diff)
	}
	for name, rights := range map[string][]rbacv1.PolicyRule{"eventless": getAll, "objectless": {listEvents}} {
		m.about = nil
		err := w.ask(w.user(name, rights, viewAll), here, wire.Events, in, &out)
		if !apierrors.IsForbidden(err) || m.about != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNothingIsReadOfAnObjectThatIsNoCopy(t *testing.T) {
	w := newWorld(t)
	m := w.grown("settings")
	binding := w.place("ConfigMap", "foreign", here)
	binding.Status.Clusters[0].UID = ""
	must(t, hub.Status().Update(t.Context(), binding))
	token := w.user("may", append([]rbacv1.PolicyRule{listEvents, getLogs}, getAll...), viewAll)
	in := w.object("ConfigMap", "foreign")
	var events wire.EventsAnswer
	var logs wire.LogsAnswer
	must(t, w.ask(token, here, wire.Events, wire.EventsRequest{Object: in}, &events))
	must(t, w.ask(token, here, wire.Logs, wire.LogsRequest{Object: in}, &logs))
	if events.Refused == nil || logs.Refused == nil || m.about != nil || m.logs != nil || m.owners != nil {
		t.Errorf("got %+v %+v", events, logs)
	}
}

func TestLogsAreThoseOfThePodsBelowTheCopy(t *testing.T) {
	w := newWorld(t)
	m := w.grown("settings")
	m.log = func(in member.LogIntent) (member.Log, error) {
		switch in.Pod + "/" + in.Container {
		case "web-0/init":
			return member.Log{}, apierrors.NewBadRequest("container \"init\" is\x1b waiting")
		case "web-1/main":
			return member.Log{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-1")
		}
		return member.Log{Text: "line\n", Cut: true}, nil
	}
	token := w.user("may", append([]rbacv1.PolicyRule{getLogs}, getAll...), viewAll)
	since := metav1.Unix(1000, 0)
	in := wire.LogsRequest{Object: w.object("ConfigMap", "settings"), Lines: 5, Since: []wire.LogSince{{Pod: "web-0", Container: "main", Time: since}}}
	var out wire.LogsAnswer
	must(t, w.ask(token, here, wire.Logs, in, &out))
	want := wire.LogsAnswer{Notes: m.children.Notes, Logs: []wire.ContainerLog{
		{Pod: "web-0", Container: "init", Error: "container \"init\" is  waiting"}, {Pod: "web-0", Container: "main", Text: "line\n", Cut: true},
	}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if asked := m.logs[1]; asked.Lines != 5 || !asked.Since.Equal(&since) || asked.Namespace != w.ns || asked.Bytes != 100<<10 || asked.UID != "uid-web-0" {
		t.Errorf("asked for %+v", asked)
	}

	m.logs, in.Container = nil, "main"
	must(t, w.ask(token, here, wire.Logs, in, &out))
	if len(m.logs) != 2 || m.logs[0].Pod != "web-0" || m.logs[1].Pod != "web-1" {
		t.Errorf("asked for %+v", m.logs)
	}
	in.Container = "../x"
	if err := w.ask(token, here, wire.Logs, in, &out); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	in.Container = ""
	m.log = func(member.LogIntent) (member.Log, error) {
		return member.Log{}, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	}
	if err := w.ask(token, here, wire.Logs, in, &out); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "pods/log of cluster cn-sha-1: not granted to the hub") {
		t.Errorf("got %v", err)
	}
	logless := w.user("logless", getAll, viewAll)
	if err := w.ask(logless, here, wire.Logs, in, &out); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not get pods/log") {
		t.Errorf("got %v", err)
	}
}
