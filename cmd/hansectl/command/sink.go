package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// errNotDelivered means that the receiver of a sink has not accepted a test message.
var errNotDelivered = errors.New("the test message was not delivered")

func newSink(h *hub) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Test the receivers of notifications",
		Long:  "Test the receivers of the hub's notifications, which NotificationSinks name.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:  usage(knownCommand),
	}
	cmd.AddCommand(newSinkTest(h))
	return cmd
}

func newSinkTest(h *hub) *cobra.Command {
	timeout := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a test message to the receiver of a NotificationSink",
		Long: `Send a test message to the receiver of a NotificationSink, and show what it answers.

The command sets the annotation hanse.dev/test-sink. The hub then sends one message, in the format of the sink, whatever
its filter is. Of the answer, the hub shows the status code alone. The hub does not repeat a test that failed. A sink of
the format PagerDuty opens an incident with the urgency of an information, which you resolve there.`,
		Example: `  hansectl sink test pager`,
		Args:    arguments("NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return h.testSink(cmd.Context(), args[0], timeout) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names, err := h.objectNames(cmd, "notificationsinks."+hubv1.GroupVersion.Group, typed)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait for the answer of the receiver.")
	return cmd
}

func (h *hub) testSink(ctx context.Context, name string, timeout time.Duration) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	named := "notificationsink/" + name
	var sink hubv1.NotificationSink
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &sink); err != nil {
		return fmt.Errorf("reading %s: %w", named, err)
	}
	before, id := sink.DeepCopy(), strings.ToLower(rand.Text())
	if sink.Annotations == nil {
		sink.Annotations = map[string]string{}
	}
	sink.Annotations[hubv1.TestSinkAnnotation] = id
	if err := c.Patch(ctx, &sink, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("requesting a test of %s: %w", named, err)
	}
	printLine(h.streams.Out, named, "requested a test message from the hub")
	_, err = await(ctx, h.streams.Out, timeout, func(ctx context.Context) (string, bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &sink); err != nil {
			return "", false, fmt.Errorf("reading %s: %w", named, err)
		}
		switch is := sink.Status.Test; {
		case is == nil || is.ID != id:
			return "waiting for the hub", false, nil
		case !is.Delivered:
			return "", false, fmt.Errorf("%w: %s", errNotDelivered, is.Message)
		default:
			return is.Message, true, nil
		}
	})
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("waiting for the result of the test of %s: %w: hansectl problems --checks says whether a hub leads", named, err)
	}
	return err
}
