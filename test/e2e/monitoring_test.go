package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// alertTime is the longest time until an alert fires: the time until the hub detects the fault, the shortened "for" of
// the rule, and three scrapes.
const alertTime = 2 * time.Minute

// TestAlertsAndDashboards runs Prometheus with the chart's rules, in make test-long. It scrapes two replicas of the
// hub, one directly and one over TLS as the chart configures it. Every dashboard panel must have data. Each of four
// faults must fire its own alert, and no alert of another cause.
func TestAlertsAndDashboards(t *testing.T) {
	if os.Getenv("HANSE_LONG") == "" {
		t.Skip("without HANSE_LONG, make test-e2e does not build Prometheus; make test-long runs this test")
	}
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "watched")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
	}
	p := prometheusOfTheHub(t)
	eventually(t, normal, func() error { return answers(ctx, p, "sum(hanse_hub_leader) == 1 and count(hanse_hub_leader) == 2") })

	t.Run("every panel has data", func(t *testing.T) {
		must(t, suite.Hub.Patch(ctx, widget(ns, "watched"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
		for _, m := range members {
			eventually(t, normal, func() error { return replicasOn(ctx, m, w, 4) })
		}
		for panel, queries := range panelQueries(t) {
			for _, q := range queries {
				// The hub counts unclaimed copies once a minute.
				if err := poll(ctx, 90*time.Second, func() error { return answers(ctx, p, q) }); err != nil {
					t.Errorf("%s: %v", panel, err)
				}
			}
		}
	})

	t.Run("a member whose packets are dropped", func(t *testing.T) {
		before := firingNow(t, p)
		begin := time.Now()
		breakMember(t, frankfurt, "blackhole")
		eventually(t, alertTime, func() error { return fires(t, p, "HanseMemberNotReady", "cluster", frankfurt) })
		mendMember(t, frankfurt)
		eventually(t, alertTime, func() error { return quiet(t, p, "HanseMemberNotReady") })
		onlyFired(t, p, begin, before, "HanseMemberNotReady")
	})

	t.Run("a field that another client keeps changing", func(t *testing.T) {
		before := firingNow(t, p)
		begin := time.Now()
		eventually(t, alertTime, func() error {
			return errors.Join(changeBack(ctx, w), fires(t, p, "HanseFieldContested", "cluster", frankfurt))
		})
		must(t, suite.Hub.Delete(ctx, w.DeepCopy()))
		eventually(t, alertTime, func() error { return quiet(t, p, "HanseFieldContested") })
		onlyFired(t, p, begin, before, "HanseFieldContested")
	})

	t.Run("credentials that expire", func(t *testing.T) {
		before := firingNow(t, p)
		begin := time.Now()
		t.Cleanup(func() { setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil)) })
		setSecret(t, frankfurt, shortKubeconfig(t, frankfurt))
		eventually(t, alertTime, func() error { return fires(t, p, "HanseMemberCredentialsExpire", "cluster", frankfurt) })
		setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
		eventually(t, alertTime, func() error { return quiet(t, p, "HanseMemberCredentialsExpire") })
		onlyFired(t, p, begin, before, "HanseMemberCredentialsExpire")
	})

	t.Run("a rollout that stops", func(t *testing.T) {
		before := firingNow(t, p)
		begin := time.Now()
		web := stoppedRollout(t, ns)
		eventually(t, alertTime, func() error { return fires(t, p, "HanseRolloutStopped", "state", string(hubv1.RolloutFailed)) })
		must(t, suite.Hub.Delete(ctx, web.DeepCopy()))
		eventually(t, alertTime, func() error { return quiet(t, p, "HanseRolloutStopped") })
		// HanseCopiesFailing fires because the copies of the first wave are Degraded.
		onlyFired(t, p, begin, before, "HanseRolloutStopped", "HanseCopiesFailing")
	})
}

// prometheusOfTheHub starts a second replica of the hub, which serves metrics as the chart configures it, and a
// Prometheus that scrapes both replicas.
func prometheusOfTheHub(t *testing.T) *fleet.Prometheus {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	h, err := suite.StartHub(ctx, "hub-scraped", "--metrics-secure=true")
	if h != nil {
		t.Cleanup(func() { _ = h.Stop() })
	}
	must(t, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "prometheus"}}
	must(t, suite.Hub.Create(ctx, account))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-hub-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	must(t, suite.Hub.Create(ctx, binding))
	t.Cleanup(func() {
		_ = suite.Hub.Delete(context.WithoutCancel(ctx), binding)
		_ = suite.Hub.Delete(context.WithoutCancel(ctx), account)
	})
	token, err := suite.Hub.Token(ctx, account.Name)
	must(t, err)
	secureURL := strings.Replace(h.Metrics, "http://", "https://", 1)
	eventually(t, normal, func() error { // at first, the certificate has only the DNS name of the console
		scraper, err := metricsClient(ctx)
		if err != nil {
			return err
		}
		defer scraper.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, secureURL, nil)
		if err != nil {
			return err
		}
		res, err := scraper.Do(req)
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	var secret corev1.Secret
	must(t, suite.Hub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-webhook"}, &secret))
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), secret.Data["ca.crt"], 0o600))

	job := func(name, url string) map[string]any {
		scheme, address, _ := strings.Cut(strings.TrimSuffix(url, "/metrics"), "://")
		labels := map[string]string{"namespace": hubv1.SystemNamespace, "pod": name} // the labels that a ServiceMonitor sets
		return map[string]any{
			"job_name": name, "scheme": scheme, "honor_labels": true, "scrape_native_histograms": true,
			"static_configs": []any{map[string]any{"targets": []string{address}, "labels": labels}},
		}
	}
	secure := job("hub-scraped", secureURL)
	secure["authorization"] = map[string]string{"credentials_file": filepath.Join(dir, "token")}
	secure["tls_config"] = map[string]string{"ca_file": filepath.Join(dir, "ca.crt"), "server_name": "hanse-hub-metrics.hanse-system.svc"}
	p, err := suite.StartPrometheus(ctx, dir, map[string]any{
		"global":         map[string]string{"scrape_interval": "2s", "evaluation_interval": "2s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{job("hub", suite.hub.Metrics), secure},
	}, shortRules(t))
	if p != nil {
		t.Cleanup(p.Kill)
	}
	must(t, err)
	return p
}

// shortRules returns the chart's rules with shorter times, so that their alerts fire during the test. It leaves out the
// burn-rate alerts, which have promtool tests. The alert for expiring tokens gets a short limit, because the lab's
// tokens are valid for at least an hour.
func shortRules(t *testing.T) map[string]any {
	t.Helper()
	spec, err := suite.PrometheusRules(t.Context(), "metrics.prometheusRule.thresholds.credentialsDays=0.01")
	must(t, err)
	for _, g := range spec["groups"].([]any) {
		group := g.(map[string]any)
		group["rules"] = slices.DeleteFunc(group["rules"].([]any), func(r any) bool {
			alert, _ := r.(map[string]any)["alert"].(string)
			return strings.HasPrefix(alert, "HanseSyncBudget")
		})
		for _, r := range group["rules"].([]any) {
			if rule := r.(map[string]any); rule["alert"] == "HanseMetricMissing" {
				rule["for"] = "90s" // the hub counts unclaimed copies once a minute
			} else if rule["alert"] != nil {
				rule["for"] = "20s"
			}
		}
	}
	return spec
}

// panelQueries returns the queries of all panels by the names of dashboard and panel. The variables for cluster and
// kind match everything.
func panelQueries(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(suite.Charts, "hanse-hub", "files", "dashboards", "*.json"))
	must(t, err)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$cluster", ".*", "$kind", ".*")
	queries := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var dashboard struct {
			Title  string `json:"title"`
			Panels []struct {
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		must(t, json.Unmarshal(text, &dashboard))
		for _, panel := range dashboard.Panels {
			name := dashboard.Title + ", " + panel.Title
			for _, target := range panel.Targets {
				queries[name] = append(queries[name], variables.Replace(target.Expr))
			}
		}
	}
	if len(queries) == 0 {
		t.Fatal("the chart has no dashboards")
	}
	return queries
}

// answers returns nil if the query has a result.
func answers(ctx context.Context, p *fleet.Prometheus, expr string) error {
	result, err := p.Query(ctx, expr)
	if err == nil && len(result) == 0 {
		return fmt.Errorf("%s has no data", expr)
	}
	return err
}

// firing returns the alerts in the result of a query over ALERTS. The keys are the labels as JSON, the values are the
// names of the alerts.
func firing(ctx context.Context, p *fleet.Prometheus, expr string) (map[string]string, error) {
	result, err := p.Query(ctx, expr)
	alerts := map[string]string{}
	for _, s := range result {
		delete(s.Metric, "__name__")
		text, _ := json.Marshal(s.Metric) // a map of strings can always be encoded
		alerts[string(text)] = s.Metric["alertname"]
	}
	return alerts, err
}

// firingNow waits until no alert is pending, and returns the alerts that fire because of earlier tests.
func firingNow(t *testing.T, p *fleet.Prometheus) map[string]string {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		pending, err := firing(t.Context(), p, `ALERTS{alertstate="pending"}`)
		if err == nil && len(pending) > 0 {
			return fmt.Errorf("these alerts are pending: %v", pending)
		}
		return err
	})
	alerts, err := firing(t.Context(), p, `ALERTS{alertstate="firing"}`)
	must(t, err)
	return alerts
}

// fires returns nil if the alert fires with this value of the label.
func fires(t *testing.T, p *fleet.Prometheus, alert, label, value string) error {
	t.Helper()
	return answers(t.Context(), p, fmt.Sprintf(`ALERTS{alertstate="firing",alertname=%q,%s=%q}`, alert, label, value))
}

// quiet returns nil if the alert is neither firing nor pending.
func quiet(t *testing.T, p *fleet.Prometheus, alert string) error {
	t.Helper()
	alerts, err := firing(t.Context(), p, fmt.Sprintf(`ALERTS{alertname=%q}`, alert))
	if err == nil && len(alerts) > 0 {
		return fmt.Errorf("these alerts last: %v", alerts)
	}
	return err
}

// onlyFired fails the test for each alert that fired since begin, is not in before, and has no allowed name.
func onlyFired(t *testing.T, p *fleet.Prometheus, begin time.Time, before map[string]string, allowed ...string) {
	t.Helper()
	since := int(time.Since(begin).Seconds())
	alerts, err := firing(t.Context(), p, fmt.Sprintf(`max_over_time(ALERTS{alertstate="firing"}[%ds])`, since))
	must(t, err)
	for alert, name := range alerts {
		if _, fired := before[alert]; !fired && !slices.Contains(allowed, name) {
			t.Errorf("an alert of another cause fired: %s", alert)
		}
	}
}

// changeBack sets spec.replicas of a Widget's copy in Frankfurt to 7, unless it is already 7. Called repeatedly, it
// fights the hub.
func changeBack(ctx context.Context, w *unstructured.Unstructured) error {
	copied, err := on(ctx, frankfurt, w)
	if err != nil {
		return err
	}
	if replicas, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas"); replicas == 7 {
		return nil
	}
	return suite.Members[frankfurt].Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`)), client.FieldOwner("opponent"))
}

// shortKubeconfig returns a kubeconfig with a token of the hub's account on the member. The token expires in ten
// minutes.
func shortKubeconfig(t *testing.T, member string) []byte {
	t.Helper()
	clients, err := kubernetes.NewForConfig(suite.Members[member].Config)
	must(t, err)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	answer, err := clients.CoreV1().ServiceAccounts(hubv1.SystemNamespace).CreateToken(t.Context(), "hanse", request, metav1.CreateOptions{})
	must(t, err)
	return kubeconfigWith(t, member, answer.Status.Token)
}

// stoppedRollout makes a change whose pods never become ready, so that its rollout stops in the first wave. It returns
// the changed object.
func stoppedRollout(t *testing.T, ns string) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	web := deployment(ns, "stopped-web")
	must(t, unstructured.SetNestedField(web.Object, int64(10), "spec", "progressDeadlineSeconds"))
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(strings.Replace(europeFirst, "onFailure: Rollback", "onFailure: Pause", 1)), &spec))
	place(t, ns, "stopped", deployments, spec)
	must(t, suite.Hub.Create(ctx, web))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	setImage(t, web, "hanse.dev/broken")
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutFailed, "europe") })
	return web
}
