package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/cmd/hansectl/release"
)

// installedChart is a chart of Hanse whose value lists kinds.
type installedChart struct {
	name  string
	value string
	role  string // ClusterRole of the chart, which carries the marks of a GitOps tool
}

var (
	hubChart    = installedChart{name: "hanse-hub", value: "federatedKinds", role: hubName}
	memberChart = installedChart{name: "hanse-member", value: "grantedKinds", role: accountName}
)

// installation is how a chart is installed on a cluster.
type installation struct {
	installedChart
	release *release.Release // nil if helm has stored no release
	owner   string           // the GitOps tool that owns it; empty if there is none
}

// String names the installation.
func (i *installation) String() string {
	if i.release == nil {
		return "chart " + i.name
	}
	return "release " + i.release.Name
}

// byHelm reports whether the values may be changed by helm. A GitOps tool would revert such a change.
func (i *installation) byHelm() bool { return i.release != nil && i.owner == "" }

// readInstallation finds the release of a chart in the namespace hanse-system.
func readInstallation(ctx context.Context, c client.Client, of installedChart) (*installation, error) {
	found := &installation{installedChart: of}
	var role rbacv1.ClusterRole
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: of.role}, &role)); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", of.role, err)
	}
	found.owner = gitOpsOwner(&role)
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels(release.DeployedLabels())); err != nil {
		return nil, fmt.Errorf("listing the Helm releases in %s: %w", hubv1.SystemNamespace, err)
	}
	for i := range secrets.Items {
		if secrets.Items[i].Type != release.SecretType {
			continue
		}
		r, err := release.Read(secrets.Items[i].Data["release"])
		if err != nil {
			return nil, fmt.Errorf("reading the Helm release in Secret %s: %w", secrets.Items[i].Name, err)
		}
		if r.ChartName() == of.name {
			found.release = r
		}
	}
	return found, nil
}

// gitOpsOwner returns the GitOps tool that has written an object, by the marks that it puts on objects.
func gitOpsOwner(o client.Object) string {
	if name := o.GetLabels()["helm.toolkit.fluxcd.io/name"]; name != "" {
		return "Flux, HelmRelease " + o.GetLabels()["helm.toolkit.fluxcd.io/namespace"] + "/" + name
	}
	if id := o.GetAnnotations()["argocd.argoproj.io/tracking-id"]; id != "" {
		app, _, _ := strings.Cut(id, ":")
		return "Argo CD, Application " + app
	}
	if app := o.GetLabels()["argocd.argoproj.io/instance"]; app != "" {
		return "Argo CD, Application " + app
	}
	return ""
}

// kindsChange is a change of the list of kinds in the values of a chart.
type kindsChange struct {
	*installation
	entries []release.Entry // the new value; without a release, only the entries to add
	added   []release.Wanted
}

// with returns the change that adds kinds. Members have no status to write.
func (i *installation) with(kinds []release.Wanted) (*kindsChange, error) {
	kinds = slices.Clone(kinds)
	if i.value != hubChart.value {
		for n := range kinds {
			kinds[n].Status = false
		}
	}
	change := &kindsChange{installation: i}
	var before []release.Entry
	if i.release != nil {
		var err error
		if before, err = release.ReadEntries(i.release.Value(i.value)); err != nil {
			return nil, err
		}
	}
	change.entries, change.added = release.With(before, kinds)
	return change, nil
}

// drop leaves kinds out of a change for which the present value is not known.
func (c *kindsChange) drop(granted func(release.Wanted) bool) {
	c.entries, c.added = release.With(nil, slices.DeleteFunc(c.added, granted))
}

func (c *kindsChange) values() map[string]any { return map[string]any{c.value: c.entries} }

// print prints the rights that the chart gives in addition with the new value. It renders the chart of the release with
// the present values, and with the new one.
func (c *kindsChange) print(ctx context.Context, w io.Writer) error {
	if c.release == nil {
		printLine(w, c.String(), "%s", "helm has no release of it here")
		for _, k := range c.added {
			printLine(w, "", "+ %s", k.GroupResource())
		}
		return nil
	}
	printLine(w, c.String(), "revision %d of chart %s %v", c.release.Revision, c.name, c.release.Chart.Metadata["version"])
	archive, err := c.release.Archive()
	if err != nil {
		return err
	}
	before, err := rolesOf(ctx, c.release, archive, c.release.Values)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c.values())
	if err != nil {
		return fmt.Errorf("writing the values: %w", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}
	after, err := rolesOf(ctx, c.release, archive, c.release.Values, values)
	if err != nil {
		return err
	}
	printAdded(w, before, after)
	if c.value == memberChart.value {
		for _, risk := range risks(after) {
			printLine(w, "", "WARNING: a user who controls the hub is an administrator of this cluster by %s", risk)
		}
	}
	return nil
}

// rolesOf returns the rules of all ClusterRoles of a rendered release.
func rolesOf(ctx context.Context, r *release.Release, archive []byte, values ...map[string]any) ([]rbacv1.PolicyRule, error) {
	rendered, err := chart.Render(ctx, chart.Input{Archive: archive, Release: r.Name, Namespace: r.Namespace, Values: values})
	if err != nil {
		return nil, fmt.Errorf("rendering the chart of release %s: %w", r.Name, err)
	}
	var out []rbacv1.PolicyRule
	for _, o := range rendered.Objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("reading ClusterRole %s: %w", o.GetName(), err)
		}
		out = append(out, role.Rules...)
	}
	return out, nil
}

// printValues prints the value to commit.
func (c *kindsChange) printValues(w io.Writer) error {
	text, err := yaml.Marshal(c.values())
	if err != nil {
		return fmt.Errorf("writing the values: %w", err)
	}
	switch {
	case c.release != nil:
		fmt.Fprintf(w, "It is owned by %s. Commit this value:\n%s", c.owner, text)
	case c.owner != "":
		fmt.Fprintf(w, "It is owned by %s. Add these entries to its values, and commit them:\n%s", c.owner, text)
	default:
		fmt.Fprintf(w, "Add these entries to the values with which you install the chart:\n%s", text)
	}
	return nil
}

var errNoHelm = errors.New("helm is not in PATH: install it, or upgrade the release with this value by yourself")

// upgrade changes the value of the release by helm, with the chart that the release stores.
func (c *kindsChange) upgrade(ctx context.Context, w io.Writer, flags []string) (err error) {
	helm, err := exec.LookPath("helm")
	if err != nil {
		return errors.Join(c.printValues(w), errNoHelm)
	}
	dir, err := os.MkdirTemp("", "hansectl-")
	if err != nil {
		return fmt.Errorf("making a directory for the chart: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	archive, err := c.release.Archive()
	if err != nil {
		return err
	}
	values, err := yaml.Marshal(c.values())
	if err != nil {
		return fmt.Errorf("writing the values: %w", err)
	}
	chartFile, valuesFile := filepath.Join(dir, c.name+".tgz"), filepath.Join(dir, "values.yaml")
	if err := errors.Join(os.WriteFile(chartFile, archive, 0o600), os.WriteFile(valuesFile, values, 0o600)); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	args := append([]string{"upgrade", c.release.Name, chartFile, "--namespace", c.release.Namespace, "--reuse-values", "--values", valuesFile}, flags...)
	run := exec.CommandContext(ctx, helm, args...)
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	if err := run.Run(); err != nil {
		return fmt.Errorf("helm upgrade: %w: %s", err, strings.TrimSpace(output.String()))
	}
	printLine(w, c.String(), "upgraded: %s has %s", c.value, counted(len(c.added), "new kind"))
	return nil
}

var errHelmFlags = errors.New("helm has no flags like --cluster, --user, --client-certificate and --client-key: pass a context of a kubeconfig")

// helmFlags returns the flags with which helm reaches the hub.
func (h *hub) helmFlags() ([]string, error) {
	f := h.flags
	for _, value := range []*string{f.ClusterName, f.AuthInfoName, f.CertFile, f.KeyFile} {
		if value != nil && *value != "" {
			return nil, errHelmFlags
		}
	}
	var out []string
	for _, flag := range []struct {
		name  string
		value *string
	}{
		{"--kubeconfig", f.KubeConfig}, {"--kube-context", f.Context}, {"--kube-apiserver", f.APIServer}, {"--kube-token", f.BearerToken},
		{"--kube-ca-file", f.CAFile}, {"--kube-tls-server-name", f.TLSServerName}, {"--kube-as-user", f.Impersonate},
	} {
		if flag.value != nil && *flag.value != "" {
			out = append(out, flag.name, *flag.value)
		}
	}
	for _, group := range *f.ImpersonateGroup {
		out = append(out, "--kube-as-group", group)
	}
	return out, nil
}
