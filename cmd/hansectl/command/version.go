package command

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// versions is the output of the command version.
type versions struct {
	Client clientVersion `json:"client"`
	// Hub is nil if the hub was not asked for its version.
	Hub *hubVersion `json:"hub,omitempty"`
}

type clientVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// hubVersion has the version of the hub's leading replica. If the version is not known, Version is empty, and Unknown
// is the reason.
type hubVersion struct {
	Version string `json:"version,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Write writes one line for hansectl, and one line for the hub unless Hub is nil.
func (v versions) Write(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "hansectl %s (%s, %s)\n", v.Client.Version, v.Client.Go, v.Client.Platform)
	switch {
	case v.Hub == nil:
	case v.Hub.Version != "":
		fmt.Fprintf(w, "hub      %s\n", v.Hub.Version)
	default:
		fmt.Fprintf(w, "hub      unknown: %s\n", v.Hub.Unknown)
	}
}

func newVersion(h *hub) *cobra.Command {
	var out output
	var clientOnly bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of hansectl and of the hub", Args: arguments(),
		Long: `Print the versions of hansectl and of the hub. The hub's is read from the Lease of the leading replica; a Lease
that cannot be read is no error.

The command prints a warning if the versions are more than one minor version apart. Builds that are no release are not
compared.`,
		Example: `  hansectl version

  # Without asking the hub
  hansectl version --client`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			v := versions{Client: clientVersion{Version: h.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}}
			if !clientOnly {
				v.Hub = h.hubVersion(cmd.Context())
				h.warnOfSkew(v.Hub.Version)
			}
			return out.print(h.streams.Out, v)
		},
	}
	out.addTo(cmd)
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print only the version of hansectl, and send no request to the hub.")
	return cmd
}

// warnOfSkew prints a warning if the versions of hansectl and the hub are more than one minor version apart. hub is
// empty if the version of the hub is not known.
func (h *hub) warnOfSkew(hub string) {
	if check := view.CheckVersions(h.version, hub, ""); check.Result == view.FindingWarning {
		h.warn(fmt.Sprintf("warning: %s: %s\n", check.Message, check.Do))
	}
}

// hubVersion reads the version of the hub. If this fails, the result has the reason instead of a version. The command
// then still prints the version of hansectl.
func (h *hub) hubVersion(ctx context.Context) *hubVersion {
	ctx, cancel := context.WithTimeout(ctx, dispensableWithin)
	defer cancel()
	c, _, err := h.connect()
	if err != nil {
		return &hubVersion{Unknown: err.Error()}
	}
	var lease coordinationv1.Lease
	err = c.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, &lease)
	version := strings.ReplaceAll(lease.Labels[hubv1.VersionLabel], "_", "+")
	switch {
	case apierrors.IsNotFound(err):
		return &hubVersion{Unknown: "no hub has led yet"}
	case err != nil:
		return &hubVersion{Unknown: fmt.Sprintf("reading Lease %s/%s: %v", hubv1.SystemNamespace, hubName, err)}
	case version == "":
		return &hubVersion{Unknown: "the Lease of the hub has no label " + hubv1.VersionLabel + ": the hub is older than this label"}
	}
	return &hubVersion{Version: version}
}
