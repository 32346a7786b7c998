package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/epoch"
)

var errNoEpochs = errors.New("the hub has no ConfigMap " + hubv1.SystemNamespace + "/" + hubv1.EpochsConfigMap + ": start a hub, which creates the ConfigMap")

func newAcceptRestore(h *hub) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "accept-restore",
		Short: "Let a hub that was restored from a backup overwrite newer copies",
		Long: `Let a hub that was restored from a backup overwrite or remove all copies that it wrote after the backup was taken.

Until you accept the restore, the hub holds these copies: their rows have the reason ` + hubv1.ReasonHubIsOlder + `. First update the objects
on the hub as far as you can; hansectl diff shows what is about to change. Copies that already match the hub are
not changed.

To accept the copies of one object alone, set the annotation ` + hubv1.AcceptSourceAnnotation + ` on the object.
The message of its row names the value.`,
		Example: `  hansectl status prometheus web -n monitoring
  hansectl diff prometheus web -n monitoring
  hansectl accept-restore`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return acceptRestore(cmd.Context(), h, yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func acceptRestore(ctx context.Context, h *hub, yes bool) error {
	hub, _, err := h.connect()
	if err != nil {
		return err
	}
	held := 0
	err = eachBinding(ctx, hub, func(b hubv1.BindingObject) {
		for _, row := range b.BindingStatus().Clusters {
			if row.Reason == hubv1.ReasonHubIsOlder {
				held++
			}
		}
	})
	if err != nil {
		return err
	}
	many := "copies that are"
	if held == 1 {
		many = "copy that is"
	}
	if err := h.confirm(yes, "The hub overwrites or removes %d %s newer than its own objects.", held, many); err != nil {
		return err
	}
	if err := restartEpochs(ctx, hub); err != nil {
		return err
	}
	printLine(h.streams.Out, "configmap/"+hubv1.EpochsConfigMap, "restore accepted: the hub overwrites or removes %d %s newer", held, many)
	return nil
}

// restartEpochs makes the hub start a new list of epochs. An epoch is a period of the hub's work; each copy names the
// epoch in which the hub wrote it. A restored hub does not know the epochs after its backup, and treats copies of these
// epochs as newer than its own state. With a new list, the hub no longer treats any copy as newer.
func restartEpochs(ctx context.Context, hub client.Client) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &corev1.ConfigMap{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.EpochsConfigMap}, c)
		switch {
		case apierrors.IsNotFound(err):
			return errNoEpochs
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s: %w", hubv1.EpochsConfigMap, err)
		}
		known, _ := epoch.ParseEpochs(c.Data[hubv1.EpochsKey])
		c.Data = map[string]string{hubv1.EpochsKey: known.Restart(epoch.NewRandom(), time.Now().Unix()).String()}
		if err := hub.Update(ctx, c); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", hubv1.EpochsConfigMap, err)
		}
		return nil
	})
}
