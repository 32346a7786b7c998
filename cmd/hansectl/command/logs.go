package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// readEvery is the interval at which commands read repeatedly from members.
const readEvery = 5 * time.Second

// logs has the arguments of one run of the command logs.
type logs struct {
	hub       *hub
	window    window
	clusters  []string
	container string
	tail      int64
	follow    bool
	every     time.Duration
}

func newLogs(h *hub) *cobra.Command {
	l := &logs{hub: h, every: readEvery}
	cmd := &cobra.Command{
		Use:   "logs (KIND NAME | KIND/NAME)",
		Short: "Show the logs of the pods that belong to an object, on every member",
		Long: `Show the logs of the pods that controllers made for the copies of a hub object, by ownerReferences, or of a
copy that is a pod. A member must grant its logs to the hub: chart value readLogs, or hansectl join --read-logs.

Each line begins with [CLUSTER POD CONTAINER]. Control characters are shown as in \x1b. At most 20 containers
of a member are read, and 100 KiB of each; a warning names a container that has more or has no log. --follow asks again
every 5 s, also for new pods. If a container writes more than 100 KiB in a second, lines of it are left out, and a
warning says so. Logs may contain secrets, which are not removed.

The member must also grant its workloads to the hub: chart value listWorkloads, or hansectl join --list-workloads.

The exit code is 1 if a cluster could not be asked.`,
		Example: `  hansectl logs deployment/web -n shop

  hansectl logs prometheus web -n monitoring --cluster cn-sha-1 -c prometheus --tail 100 -f`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.tail < 1 || l.tail > views.MaxLines {
				return usageError(cmd, fmt.Errorf("--tail is at least 1 and at most %d", views.MaxLines))
			}
			kind, name := kindAndName(args)
			return l.run(cmd.Context(), kind, name)
		},
	}
	l.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&l.clusters, "cluster", nil, "Show only this cluster. Can be repeated.")
	cmd.Flags().StringVarP(&l.container, "container", "c", "", "Show only this container.")
	cmd.Flags().Int64Var(&l.tail, "tail", 10, "Number of lines of each container to show at first.")
	cmd.Flags().BoolVarP(&l.follow, "follow", "f", false, fmt.Sprintf("Show new lines, every %s.", readEvery))
	_ = cmd.RegisterFlagCompletionFunc("cluster", h.completeMoreClusters)
	return cmd
}

func (l *logs) run(ctx context.Context, kind, name string) error {
	c, err := l.hub.reader(&l.window)
	if err != nil {
		return err
	}
	binding, clusters, err := l.hub.holders(ctx, c, kind, name, l.clusters)
	if err != nil {
		return err
	}
	viewer, err := l.window.open(ctx, l.hub, c)
	if err != nil {
		return err
	}
	request := wire.LogsRequest{Object: wire.ObjectOf(hubv1.ObjectOf(binding)), Container: l.container, Lines: l.tail}
	r := view.NewLogReader()
	fault := l.print(ctx, viewer, r, clusters, func(string) wire.LogsRequest { return request })
	if !l.follow {
		return fault
	}
	request.Lines = 0 // 0 requests all new lines
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // the user has ended the command
		case <-tick.C:
		}
		_ = l.print(ctx, viewer, r, clusters, func(cluster string) wire.LogsRequest {
			newer := request
			newer.Since = r.Since(cluster)
			return newer
		})
	}
}

// print reads logs from the clusters, and prints the lines that it has not printed before.
func (l *logs) print(ctx context.Context, viewer *views.Client, r *view.LogReader, clusters []string, request func(cluster string) wire.LogsRequest) error {
	requests := map[string]wire.LogsRequest{}
	for _, cluster := range clusters {
		requests[cluster] = request(cluster)
	}
	var mu sync.Mutex
	answers := map[string]wire.LogsAnswer{}
	notAsked := eachMember(clusters, func(cluster string) error {
		var answer wire.LogsAnswer
		in := requests[cluster]
		if err := viewer.Ask(ctx, cluster, wire.Logs, in.Object.Namespace, in, &answer); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers[cluster] = answer
		return nil
	})
	select {
	case <-ctx.Done():
		return nil // the user has ended the command
	default:
	}
	for _, cluster := range clusters {
		l.printOne(r, cluster, answers[cluster])
	}
	for _, n := range byNote(notAsked) {
		l.hub.warn(fmt.Sprintf("error: %s: %s\n", n.Cluster, view.Printable(n.Note)))
	}
	if len(notAsked) > 0 {
		return fmt.Errorf("%s could not be asked", counted(len(notAsked), "cluster"))
	}
	return nil
}

// printOne prints the logs that one cluster has returned, and notes about missing lines. Each note is printed only
// once.
func (l *logs) printOne(r *view.LogReader, cluster string, answer wire.LogsAnswer) {
	note := func(text string) {
		l.hub.warn(fmt.Sprintf("warning: %s: %s\n", cluster, view.Printable(text)))
	}
	for _, log := range answer.Logs {
		skips := r.Print(l.hub.streams.Out, cluster, log)
		about := strings.TrimSpace("pod " + log.Pod + " " + log.Container)
		if log.Error != "" {
			note(about + ": " + log.Error)
		}
		switch {
		case skips:
			note(about + ": the log has more lines in one second than an answer can hold: some lines are missing")
		case log.Cut:
			note(about + ": the log has more lines than are shown")
		}
	}
	for _, text := range answer.Notes {
		note(text)
	}
	if answer.Refused != nil {
		note(answer.Refused.Message)
	}
}
