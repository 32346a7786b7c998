package schedule

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestOverridePoliciesThatExcludeWakeTheirObjects(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exclude", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("eu", "sg")
	x := excluding(naming(s.cluster("eu")), func(p *hubv1.OverridePolicy) { p.Namespace = s.id.Namespace })
	s.create(x)
	s.becomes("-eu ExcludedByOverride Delete", "sg")
	s.eventually("the decision names policy and rule", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if want := s.cluster("eu") + `: excluded by OverridePolicy ` + s.id.Namespace + `/x, rule "r"`; d == nil || !slices.ContainsFunc(d.Rejected, func(r hubv1.RejectedClusters) bool {
			return r.Reason == hubv1.ReasonExcludedByOverride && slices.Contains(r.Examples, want)
		}) {
			return fmt.Errorf("it is %+v", d)
		}
		return nil
	})
	x.Spec.Rules[0].Clusters.Names = []string{s.cluster("sg")}
	s.updates(x)
	s.becomes("eu", "-sg ExcludedByOverride Delete")
	if err := hubClient.Delete(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	s.becomes("eu", "sg")
}

func TestAnExclusionByVersionOnlyKeepsNewObjectsOut(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exclude-version", "eu", "sg")
	s.reports("eu", `{"version":{"kubernetes":"v1.30.1"}}`)
	s.create(excluding(&hubv1.RuleClusters{Expression: "version.startsWith('v1.30')"}, func(p *hubv1.OverridePolicy) { p.Namespace = s.id.Namespace }))
	s.eventually("the scheduler knows the policy and the version", func() error {
		var c hubv1.MemberCluster
		var p hubv1.OverridePolicy
		if err := scheduler.opts.Client.Get(t.Context(), client.ObjectKey{Name: s.cluster("eu")}, &c); err != nil || c.Status.Version.Kubernetes == "" {
			return fmt.Errorf("the version is %q, %w", c.Status.Version.Kubernetes, err)
		}
		return scheduler.opts.Client.Get(t.Context(), client.ObjectKey{Namespace: s.id.Namespace, Name: "x"}, &p)
	})
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("sg")
	s.reports("eu", `{"version":{"kubernetes":"v1.31.0"}}`)
	s.becomes("eu", "sg")
	s.reports("sg", `{"version":{"kubernetes":"v1.30.2"}}`)
	s.eventually("it is seen and kept", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if d == nil || !slices.Contains(d.Reasons, hubv1.ChosenCluster{Cluster: s.cluster("sg"), Reason: hubv1.ReasonExcludedByOverride}) {
			return fmt.Errorf("the decision is %+v", d)
		}
		return nil
	})
	s.becomes("eu", "sg")
}

func (s *scene) updates(o client.Object) {
	s.t.Helper()
	if err := hubClient.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}
