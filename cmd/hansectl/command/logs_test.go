package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	hansemember "github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestEventsOfAllClustersAreInOneTableByTime(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	object, binding := settings(t)
	apply(t, onHub, binding)
	apply(t, onHub, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-the-hub"}, Type: "Normal", Reason: "Scheduled", Message: "two clusters",
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: object.UID},
	})
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
	away := false
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var in wire.EventsRequest
		switch err := json.Unmarshal(body, &in); {
		case err != nil || what != wire.Events || in.Object.Name != "settings":
			return nil, errors.Join(err, errors.New("that was not asked for"))
		case cluster == "ap-se-1":
			return wire.EventsAnswer{Notes: []string{"jobs.batch: not granted to the hub on this cluster"}, Events: []hansemember.Event{
				{Kind: "Pod", Name: "web-0", Type: "Warning", Reason: "BackOff", Message: "again\x1b[2J", Count: 7, Last: ago(time.Hour)},
				{Group: "apps", Kind: "StatefulSet", Name: "web", Type: "Normal", Reason: "Created", Last: ago(3 * time.Hour)},
			}}, nil
		case away:
			return nil, errors.New("the cluster is not connected")
		}
		return wire.EventsAnswer{More: true, Events: []hansemember.Event{{Kind: "Pod", Name: "web-9", Type: "Normal", Reason: "Pulled", Last: ago(2 * time.Hour)}}}, nil
	})
	out, err := h.hansectl("events", "cm/settings", "-n", "shop")
	must(t, err)
	wants(t, out, "LAST SEEN   CLUSTER    TYPE      REASON      OBJECT               COUNT   MESSAGE",
		"3h          ap-se-1    Normal    Created     statefulset/web      -       -",
		"120m        cn-sha-1   Normal    Pulled      pod/web-9            -       -",
		"60m         ap-se-1    Warning   BackOff     pod/web-0            7       again [2J",
		"(hub)      Normal    Scheduled   configmap/settings   -       two clusters",
		"warning: ap-se-1: jobs.batch: not granted", "warning: cn-sha-1: the cluster has more events than shown")
	order := []int{strings.Index(out, "Created"), strings.Index(out, "Pulled"), strings.Index(out, "BackOff"), strings.Index(out, "Scheduled")}
	if !slices.IsSorted(order) {
		t.Errorf("the oldest is not the first:\n%s", out)
	}

	away = true
	out, err = h.hansectl("events", "configmap", "settings", "-n", "shop")
	refused(t, err, "1 cluster could not be asked")
	wants(t, out, "BackOff", "error: cn-sha-1: the cluster is not connected")

	out, err = h.hansectl("events", "cm/settings", "-n", "shop", "--cluster", "ap-se-1", "-o", "json")
	must(t, err)
	if strings.Contains(out, "Scheduled") || !strings.Contains(out, `"cluster": "ap-se-1"`) {
		t.Errorf("got %s", out)
	}
	_, err = h.hansectl("events", "cm/settings", "-n", "shop", "--cluster", "eu-fra-1")
	refused(t, err, "ConfigMap shop/settings does not go to eu-fra-1")
}

func TestLogsHaveThePrefixOfTheirContainer(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	var requests []wire.LogsRequest
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var in wire.LogsRequest
		if err := json.Unmarshal(body, &in); err != nil || what != wire.Logs {
			return nil, errors.Join(err, errors.New("that was not asked for"))
		}
		requests = append(requests, in)
		if cluster == "ap-se-1" {
			return wire.LogsAnswer{Refused: &wire.Reason{Message: "the hub knows of no copy"}}, nil
		}
		return wire.LogsAnswer{Logs: []wire.ContainerLog{
			{Pod: "web-0", Container: "main", Text: "2026-01-01T00:00:01Z one\x1b[2J\ttwo\n2026-01-01T00:00:02.5Z three\nbroken", Cut: true},
			{Pod: "web-1", Container: "main", Error: "it is waiting"},
		}}, nil
	})
	out, err := h.hansectl("logs", "cm/settings", "-n", "shop", "-c", "main", "--tail", "3")
	must(t, err)
	wants(t, out, "[cn-sha-1 web-0 main] one\\x1b[2J\ttwo\n[cn-sha-1 web-0 main] three\n",
		"warning: ap-se-1: the hub knows of no copy", "warning: cn-sha-1: pod web-0 main: the log has more lines than are shown", "warning: cn-sha-1: pod web-1 main: it is waiting")
	if strings.Contains(out, "broken") {
		t.Errorf("half a line is shown: %s", out)
	}
	for _, in := range requests {
		if in.Lines != 3 || in.Container != "main" || in.Since != nil {
			t.Errorf("asked for %+v", in)
		}
	}
	_, err = h.hansectl("logs", "cm/settings", "-n", "shop", "--tail", "0")
	exits(t, err, 2)
}

func TestFollowedLogsHaveEachLineOnce(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked []wire.LogsRequest
	texts := []string{
		"2026-01-01T00:00:01Z one\n2026-01-01T00:00:02.1Z two\n", "2026-01-01T00:00:02.1Z two\n2026-01-01T00:00:02.2Z three\n",
		"2026-01-01T00:00:02.2Z three\n2026-01-01T00:00:03Z four\n",
	}
	h := newPlayedHub(t, func(_, _ string, body []byte) (any, error) {
		var in wire.LogsRequest
		must(t, json.Unmarshal(body, &in))
		if len(asked) == len(texts) {
			stop()
			return nil, errors.New("the end")
		}
		asked = append(asked, in)
		return wire.LogsAnswer{Logs: []wire.ContainerLog{{Pod: "web-0", Container: "main", Text: texts[len(asked)-1]}}}, nil
	})
	var out bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig, *flags.Namespace, *flags.CacheDir = onHub.kubeconfig, "shop", t.TempDir()
	l := &logs{
		hub:    &hub{flags: flags, streams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}},
		window: window{endpoint: h.url}, clusters: []string{"ap-se-1"}, tail: 10, follow: true, every: time.Millisecond,
	}
	must(t, l.run(ctx, "cm", "settings"))
	const want = "[ap-se-1 web-0 main] one\n[ap-se-1 web-0 main] two\n[ap-se-1 web-0 main] three\n[ap-se-1 web-0 main] four\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if since := asked[1].Since; asked[0].Since != nil || len(since) != 1 || since[0].Pod != "web-0" || since[0].Time.Second() != 2 || asked[1].Lines != 0 {
		t.Errorf("asked for %+v", asked)
	}
}
