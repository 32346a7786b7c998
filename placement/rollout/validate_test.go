package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestValidate(t *testing.T) {
	named := func(names ...string) *hubv1.RuleClusters { return &hubv1.RuleClusters{Names: names} }
	window := func(schedule, zone string) hubv1.RolloutPolicy {
		return hubv1.RolloutPolicy{
			Waves: []hubv1.RolloutWave{{Name: "all"}}, Windows: []hubv1.RolloutWindow{{Schedule: schedule, DurationSeconds: 60, TimeZone: zone}},
		}
	}
	for name, tc := range map[string]struct {
		policy         hubv1.RolloutPolicy
		errs, warnings []string
	}{
		"a wave of named clusters and one of all others": {
			policy: hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "canary", Clusters: named("a")}, {Name: "rest"}}},
		},
		"only the last wave may leave its clusters out": {
			policy: hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "canary"}, {Name: "rest"}}},
			errs:   []string{"rollout.waves[0].clusters: Required value: only the last wave may leave clusters unset: the waves after this one would be empty"},
		},
		"a cluster that two waves name": {
			policy:   hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "canary", Clusters: named("a")}, {Name: "asia", Clusters: named("b", "a")}, {Name: "rest"}}},
			warnings: []string{"rollout.waves[1].clusters.names[1]: cluster a belongs to wave canary, which names it first"},
		},
		"a last wave with clusters takes the others, too": {
			policy:   hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "rest", Clusters: named("a")}}},
			warnings: []string{"rollout.waves[0].clusters: clusters that no wave selects belong to wave rest, too"},
		},
		"a label selector that cannot be read": {
			policy: hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{
				{Name: "canary", Clusters: &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a b"}}}}, {Name: "rest"},
			}},
			errs: []string{`rollout.waves[0].clusters.labelSelector.matchLabels: Invalid value: "a b": a valid label must be an empty string or consist of ` +
				`alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', ` +
				`regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		},
		"a wave in which no cluster may change": {
			policy: hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "all", MaxConcurrent: ptr.To(intstr.FromInt32(0))}}},
			errs:   []string{"rollout.waves[0].maxConcurrent: Invalid value: 0: must be at least 1: to stop a wave, set approval: Manual"},
		},
		"a window on weekdays":                     {policy: window("0 2 * * 1-5", "Asia/Shanghai")},
		"a window on leap days":                    {policy: window("0 2 29 2 *", "")},
		"a schedule that is not one of cron":       {policy: window("daily", ""), errs: []string{`rollout.windows[0].schedule: Invalid value: "daily": expected exactly 5 fields, found 1: [daily]`}},
		"a schedule that never fires":              {policy: window("0 0 30 2 *", ""), errs: []string{`rollout.windows[0].schedule: Invalid value: "0 0 30 2 *": the schedule never fires`}},
		"a schedule with a time zone of its own":   {policy: window("TZ=UTC 0 2 * * *", ""), errs: []string{`rollout.windows[0].schedule: Invalid value: "TZ=UTC 0 2 * * *": set timeZone: a schedule has no time zone`}},
		"a time zone that nobody has heard of":     {policy: window("0 2 * * *", "Asia/Atlantis"), errs: []string{`rollout.windows[0].timeZone: Invalid value: "Asia/Atlantis": unknown time zone Asia/Atlantis`}},
		"the time zone of the machine is not one":  {policy: window("0 2 * * *", "Local"), errs: []string{`rollout.windows[0].timeZone: Invalid value: "Local": Local is no time zone of the IANA database`}},
		"a name for a schedule instead of a field": {policy: window("@daily", ""), errs: []string{`rollout.windows[0].schedule: Invalid value: "@daily": parser does not accept descriptors: @daily`}},
	} {
		errs, warnings := Validate(&tc.policy, field.NewPath("rollout"))
		var texts []string
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		if diff := cmp.Diff(tc.errs, texts); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", name, diff)
		}
	}
}
