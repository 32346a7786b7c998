package console

import (
	"context"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

const (
	// maxLogLines is the maximum number of lines of each container's log on a page.
	maxLogLines = 100
	// maxLogLine is the maximum length of a line of a log, in bytes.
	maxLogLine = 500
)

// objectLogs are the logs of the pods that belong to the copy on a cluster.
type objectLogs struct {
	Cluster string
	Logs    []containerLog
	Notes   []string
	// Error says why there are no logs.
	Error string
}

// containerLog has the last lines of a container's log.
type containerLog struct {
	Pod, Container string
	Lines          []logLine
	Error          string
}

// logLine is a line with its time of day. Time is empty if the member has sent none.
type logLine struct{ Time, Text string }

// mayLogs reports whether the page offers logs: the kind may have pods, and the user may read logs on the hub.
func (r *objectReader) mayLogs(ctx context.Context) bool {
	if !mayHavePods(r.id) || r.id.Namespace == "" {
		return false
	}
	may, err := r.user.may(ctx, authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "pods", Subresource: "log", Namespace: r.id.Namespace})
	return may && err == nil
}

// withoutPods are the API groups whose objects have no pods.
var withoutPods = []string{"rbac.authorization.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io", "networking.k8s.io", "policy", "apiregistration.k8s.io"}

func mayHavePods(id hubv1.ObjectIdentity) bool {
	if id.Group == "" {
		return id.Kind == "Pod" || id.Kind == "ReplicationController"
	}
	return !slices.Contains(withoutPods, id.Group)
}

func (r *objectReader) logs(ctx context.Context, ask *questions, cluster string) *objectLogs {
	var answer wire.LogsAnswer
	fault := ask.one(ctx, cluster, func(ctx context.Context, cluster string) error {
		request := wire.LogsRequest{Object: wire.ObjectOf(r.id), Lines: maxLogLines}
		return ask.views.Ask(ctx, cluster, wire.Logs, r.id.Namespace, request, &answer)
	})
	out := &objectLogs{Cluster: cluster, Notes: answer.Notes}
	switch {
	case fault != nil:
		out.Error = fault.Error()
	case answer.Refused != nil:
		out.Error = answer.Refused.Reason + ": " + answer.Refused.Message
	}
	for _, l := range answer.Logs {
		out.Logs = append(out.Logs, containerLog{Pod: l.Pod, Container: l.Container, Lines: logLines(l.Text), Error: l.Error})
	}
	return out
}

// logLines returns the last lines of a log.
func logLines(text string) []logLine {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) == 1 && all[0] == "" {
		return nil
	}
	var out []logLine
	for _, text := range all[max(len(all)-maxLogLines, 0):] {
		line := logLine{Text: text}
		if stamp, rest, found := strings.Cut(text, " "); found {
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				line = logLine{Time: at.UTC().Format(time.TimeOnly), Text: rest}
			}
		}
		line.Text = view.Printable(hubv1.CutMessage(line.Text, maxLogLine))
		out = append(out, line)
	}
	return out
}
