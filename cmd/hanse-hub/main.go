// Command hanse-hub runs the hub: it copies the objects that placements select to the member clusters.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/child"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/guard"
)

// version is the version of the hub. The build sets it.
var version = "unknown"

func main() {
	if len(os.Args) == 2 && os.Args[1] == child.Argument {
		child.Main() // Main renders one chart and ends the process
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hanse-hub:", err)
		os.Exit(1)
	}
}

func run() error {
	o := hub.Options{Version: version}
	var denied, webhookNames string
	var showVersion bool
	flag.StringVar(&o.Namespace, "namespace", hubv1.SystemNamespace,
		"Namespace of the hub's Leases and of the Secrets with member kubeconfigs.")
	flag.BoolVar(&o.Manager.LeaderElection, "leader-elect", false,
		"Choose clusters for objects only while this replica holds the Lease hanse-hub. "+
			"A hub with several replicas needs this flag.")
	flag.StringVar(&o.Identity, "identity", "",
		"Identity of this replica, such as the UID of its pod; random if empty. "+
			"The replicas divide the members by their identities.")
	flag.StringVar(&o.Manager.HealthAddress, "health-probe-bind-address", ":8081",
		"Address of /healthz and /readyz; 0 turns them off.")
	flag.StringVar(&o.Manager.MetricsAddress, "metrics-bind-address", "0", "Address of /metrics; 0 turns it off.")
	flag.BoolVar(&o.Manager.MetricsSecure, "metrics-secure", true,
		"Serve metrics over TLS, to clients that may get the path /metrics.")
	flag.StringVar(&o.View.Address, "view-bind-address", "0",
		"Address at which users with a token view copies on members, over TLS; 0 turns it off.")
	flag.StringVar(&o.View.Host, "view-advertise-host", "",
		"Host or IP address at which other replicas reach --view-bind-address, if that flag has only a port.")
	flag.StringVar(&o.TunnelAddress, "tunnel-bind-address", "0",
		"Address at which agents of members connect to the hub, over TLS; 0 turns it off.")
	flag.StringVar(&o.InventoryNamespace, "inventory-namespace", "",
		"Namespace in which MemberClusters are published as ClusterProfiles, and decisions of placements as "+
			"PlacementDecisions; empty turns it off (docs/inventory.md).")
	scopes := consoleFlags(&o)
	flag.StringVar(&o.Webhook.Address, "webhook-bind-address", "0",
		"Address of the webhook that reviews policies; 0 turns it off.")
	flag.StringVar(&webhookNames, "webhook-dns-names", "hanse-hub-webhook."+hubv1.SystemNamespace+".svc",
		"DNS names, separated by commas, by which the hub's API server calls the webhook.")
	flag.BoolVar(&o.Webhook.DryRunRendered, "webhook-dry-run-rendered", false,
		"Let the webhook check each object that an override policy renders, "+
			"by a dry run of its creation on the hub's API server.")
	flag.StringVar(&denied, "denied-metadata-prefixes", "",
		"Key prefixes, separated by commas, of labels and annotations that the hub never sends to members, "+
			"in addition to the built-in prefixes.")
	flag.Func("federated-namespaces",
		"RESOURCE=NAMESPACE,...: read objects of the resource, such as secrets or apps/deployments, in these "+
			"namespaces only. May be given more than once; a resource without this flag is read in all namespaces.",
		func(text string) error { return addNamespaces(&o, text) })
	flag.Func("operator-repositories",
		"Prefixes of repositories, separated by commas, from which charts of FederatedOperators may be fetched, "+
			"such as oci://registry.example.com/charts or https://charts.example.com; empty means none.",
		func(text string) (err error) {
			o.Repositories, err = fetch.ParseRepositories(list(text))
			return err
		})
	flag.BoolVar(&o.CheckChartVersions, "check-chart-versions", false,
		"Ask the repositories of FederatedOperators for the newest versions of their charts, at most once an hour.")
	flag.IntVar(&o.Limits.ManifestsPerNamespace, "manifests-per-namespace", 2000,
		"Maximum number of objects that the hub stores for the Bundles of one namespace; 0 means no limit.")
	limitFlags(&o)
	proxied := flag.Bool("proxy-from-environment", false,
		"Connect to members, repositories of charts, the identity provider and the hub's API server through "+
			"the proxy that HTTPS_PROXY and NO_PROXY name. By default, the hub uses no proxy.")
	vocabulary := flag.String("status-vocabulary", "",
		"Meaning of conditions and values in the statuses of further kinds, as YAML or JSON (docs/status.md).")
	flag.StringVar(&o.Tracing.Endpoint, "otlp-endpoint", "",
		"URL of an OTLP receiver for HTTP, such as https://collector.example.com:4318, to which the hub sends "+
			"the spans of changes (docs/tracing.md); an empty URL turns tracing off.")
	flag.Float64Var(&o.Tracing.Sampling, "otlp-sampling", 1,
		"Share of the changes that are traced, 0 to 1. "+
			"For an object with the annotation hanse.dev/traceparent, the sampled flag in the annotation decides instead.")
	flag.StringVar(&o.Tracing.CAFile, "otlp-ca-file", "",
		"File with the PEM certificates of the CAs of --otlp-endpoint; by default the CAs of the system.")
	flag.BoolVar(&showVersion, "version", false, "Print the version and exit.")
	logs := zap.Options{TimeEncoder: zapcore.RFC3339NanoTimeEncoder}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if showVersion {
		fmt.Println(version)
		return nil
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err := checkLimits(&o); err != nil {
		return err
	}
	o.Objects.DeniedMetadataPrefixes, o.Webhook.Names = list(denied), list(webhookNames)
	if len(o.Webhook.Names) == 0 {
		return fmt.Errorf("reading the flags: --webhook-dns-names is empty")
	}
	o.Console.OIDC.Scopes = list(*scopes)
	if err := errors.Join(o.Tracing.Validate(), o.Console.OIDC.Validate()); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if err := health.Extend([]byte(*vocabulary)); err != nil {
		return fmt.Errorf("reading the flags: --status-vocabulary: %w", err)
	}
	ctrl.SetLogger(newLogger(&logs))

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the hub's API server: %w", err)
	}
	config.UserAgent = "hanse-hub/" + version
	useProxy(config, &o, *proxied)
	return hub.Run(signals.SetupSignalHandler(), config, o)
}

// limitFlags adds the flags that limit how many copies the hub moves or deletes at once.
func limitFlags(o *hub.Options) {
	flag.DurationVar(&o.Limits.Failover.Grace, "failover-grace", time.Minute,
		"Time without an answer of a member after which the hub taints the member hanse.dev/unreachable:NoExecute. "+
			"For the same time, a new leader moves no objects from members that do not answer.")
	flag.IntVar(&o.Limits.Failover.PerSecond, "failover-evictions-per-second", 0,
		"Maximum number of objects per second that the hub moves from members that do not answer; "+
			"0: 10, or 1 % of the objects that are on members, if that is more.")
	flag.IntVar(&o.Limits.Failover.MaxAway, "failover-max-away-percent", placement.DefaultMaxAway,
		"If more than this percentage of the members do not answer, the hub moves no objects from them.")
	flag.IntVar(&o.Limits.ProtectedCopies, "protected-copies", 5,
		"A namespace or CustomResourceDefinition with more than this number of copies is listed in the ConfigMap "+
			"hanse-protected, by which the API server protects it from deletion; a negative number protects none.")
	flag.IntVar(&o.Limits.Guard.Limit.Copies, "removal-limit-copies", guard.DefaultLimit.Copies,
		"Number of copies that decisions may delete at once from a member, or of a placement without removalLimit, "+
			"even if the number exceeds --removal-limit-percent.")
	flag.IntVar(&o.Limits.Guard.Limit.Percent, "removal-limit-percent", guard.DefaultLimit.Percent,
		"Percentage of the copies of a member, or of a placement without removalLimit, that decisions may delete "+
			"at once. The larger of the two limits applies; a user must confirm more deletions.")
	flag.DurationVar(&o.Limits.Guard.Window, "removal-window", guard.Window,
		"For how long a deleted copy counts towards the removal limits, "+
			"and for how long a new leader deletes no copies without a confirmation.")
}

// checkLimits returns an error if a flag of limitFlags has a value that is out of range.
func checkLimits(o *hub.Options) error {
	if o.Limits.ManifestsPerNamespace < 0 {
		return fmt.Errorf("reading the flags: --manifests-per-namespace must be 0 or more: have %d", o.Limits.ManifestsPerNamespace)
	}
	if f := o.Limits.Failover; f.Grace <= 0 || f.PerSecond < 0 || f.MaxAway < 1 || f.MaxAway > 100 {
		return fmt.Errorf("reading the flags: --failover-grace must be above 0, --failover-evictions-per-second must be 0 or more, "+
			"--failover-max-away-percent must be 1 to 100: have %s, %d and %d", f.Grace, f.PerSecond, f.MaxAway)
	}
	if l := o.Limits.Guard.Limit; l.Copies < 0 || l.Percent < 0 || l.Percent > 100 || o.Limits.Guard.Window <= 0 {
		return fmt.Errorf("reading the flags: --removal-limit-copies must be 0 or more, --removal-limit-percent must be 0 to 100, "+
			"--removal-window must be above 0: have %d, %d and %s", l.Copies, l.Percent, o.Limits.Guard.Window)
	}
	return nil
}

// consoleFlags adds the flags of the console, and of the sign-in to it at an identity provider. It returns a pointer to
// the value of --console-oidc-scopes.
func consoleFlags(o *hub.Options) *string {
	flag.StringVar(&o.Console.Address, "console-bind-address", "0",
		"Address of the pages for browsers; 0 turns them off.")
	flag.BoolVar(&o.Console.Secure, "console-secure", true,
		"Serve --console-bind-address over TLS. If false, serve only on a loopback address, or behind a proxy "+
			"on the same host.")
	p := &o.Console.OIDC
	flag.StringVar(&p.ConsoleURL, "console-url", "",
		"URL at which browsers reach the console, such as https://hanse.example.com; "+
			"--console-oidc-issuer needs it.")
	flag.StringVar(&p.Issuer, "console-oidc-issuer", "",
		"URL of the OpenID Connect provider at which users of the console sign in; the hub's API server must "+
			"trust its ID tokens. If empty, users sign in with tokens only.")
	flag.StringVar(&p.ClientID, "console-oidc-client-id", "",
		"Client ID of the pages at the provider. It is the audience of the ID tokens.")
	flag.StringVar(&p.SecretFile, "console-oidc-client-secret-file", "",
		"File with the secret of this client; empty means a public client.")
	flag.StringVar(&p.CAFile, "console-oidc-ca-file", "",
		"File with the PEM certificates of the CAs of the provider; empty means the CAs of the system.")
	return flag.String("console-oidc-scopes", "openid,email,groups",
		"Scopes, separated by commas, that the console requests from the provider.")
}

// useProxy sets the proxy for all connections of the hub. If fromEnvironment is true, this is the proxy in the
// environment variables. Otherwise the hub uses no proxy, except one that its kubeconfig names for its own API server.
func useProxy(config *rest.Config, o *hub.Options, fromEnvironment bool) {
	if fromEnvironment {
		o.Proxy = http.ProxyFromEnvironment
	} else if config.Proxy == nil { // with nil, client-go uses the proxy of the environment
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
}

var errNamespaces = errors.New("want RESOURCE=NAMESPACE,..., such as secrets=shop or apps/deployments=shop,blog")

// addNamespaces adds one value of --federated-namespaces, such as "secrets=shop", to the options.
func addNamespaces(o *hub.Options, text string) error {
	what, where, _ := strings.Cut(text, "=")
	namespaces := list(where)
	if what == "" || len(namespaces) == 0 {
		return errNamespaces
	}
	resource := schema.GroupResource{Resource: what}
	if group, name, found := strings.Cut(what, "/"); found {
		resource = schema.GroupResource{Group: group, Resource: name}
	}
	if o.Objects.FederatedNamespaces == nil {
		o.Objects.FederatedNamespaces = map[schema.GroupResource][]string{}
	}
	for _, namespace := range namespaces {
		if !slices.Contains(o.Objects.FederatedNamespaces[resource], namespace) {
			o.Objects.FederatedNamespaces[resource] = append(o.Objects.FederatedNamespaces[resource], namespace)
		}
	}
	return nil
}

// list splits the value of a flag at commas.
func list(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
