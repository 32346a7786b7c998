package rollout

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var foldedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// part returns the report about an object that passes, since this number of seconds after foldedAt.
func part(name string, seconds int, change ...func(*Part)) Part {
	at := foldedAt.Add(time.Duration(seconds) * time.Second)
	p := Part{Object: name, Wants: 2, Needed: true, Row: Row{Revision: 2, Applied: true, Health: hubv1.HealthHealthy, Changed: at, PassingSince: at, Observes: true}}
	for _, f := range change {
		f(&p)
	}
	return p
}

func older(p *Part)     { p.Revision = 1 }
func unneeded(p *Part)  { p.Needed = false }
func unhealthy(p *Part) { p.Health, p.PassingSince = hubv1.HealthProgressing, time.Time{} }
func degraded(p *Part) {
	p.Health, p.Reason, p.PassingSince = hubv1.HealthDegraded, "CrashLoop", time.Time{}
}
func refusedPart(p *Part) {
	p.Applied, p.Refused, p.Reason, p.Message, p.PassingSince = false, true, hubv1.ReasonForbidden, "no right", time.Time{}
}

func TestTheReportAboutABundleIsThatOfItsObjects(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return foldedAt.Add(time.Duration(seconds) * time.Second) }
	healthy := Row{Revision: 7, Applied: true, Health: hubv1.HealthHealthy, Observes: true}
	with := func(r Row, change func(*Row)) Row { change(&r); return r }
	tests := map[string]struct {
		parts []Part
		want  Row
	}{
		"a bundle without objects on the cluster is healthy": {nil, with(healthy, func(r *Row) { r.PassingSince = at(0) })},
		"the last object to pass counts": {
			[]Part{part("a", 3), part("b", 5)}, with(healthy, func(r *Row) { r.PassingSince, r.Changed = at(5), at(5) }),
		},
		"an object that is not needed must be applied, and need not be healthy": {
			[]Part{part("a", 3), part("b", 5, unneeded, unhealthy)}, with(healthy, func(r *Row) { r.PassingSince, r.Changed = at(3), at(5) }),
		},
		"each object counts if none is needed": {
			[]Part{part("a", 3, unneeded), part("b", 5, unneeded, unhealthy)},
			Row{Revision: 7, Applied: true, Health: hubv1.HealthProgressing, Observes: true, Changed: at(5), Message: "b: the cluster has not reported it yet"},
		},
		"an object with its earlier content is not applied": {
			[]Part{part("a", 3), part("b", 5, unneeded, older)},
			Row{Revision: 7, Health: hubv1.HealthProgressing, Observes: true, Changed: at(5), Message: "b: the cluster has not reported it yet"},
		},
		"an object that is degraded with its earlier content does not make the bundle degraded": {
			[]Part{part("a", 3, degraded, older)}, Row{Revision: 7, Health: hubv1.HealthProgressing, Observes: true, Changed: at(3), Reason: "CrashLoop", Message: "a: CrashLoop"},
		},
		"one degraded workload makes the bundle degraded": {
			[]Part{part("a", 9, unhealthy), part("b", 5, degraded)},
			Row{Revision: 7, Applied: true, Health: hubv1.HealthDegraded, Observes: true, Changed: at(5), Reason: "CrashLoop", Message: "b: CrashLoop"},
		},
		"one refused object makes the bundle refused": {
			[]Part{part("a", 9, degraded), part("b", 5, unneeded, refusedPart)},
			Row{Revision: 7, Refused: true, Health: hubv1.HealthProgressing, Observes: true, Changed: at(5), Reason: hubv1.ReasonForbidden, Message: "b: no right"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Fold(7, at(0), tc.parts); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestTheReportAboutABundleDoesNotDependOnTheOrderOfItsObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := []func(*Part){func(*Part) {}, older, unneeded, unhealthy, degraded, refusedPart, func(p *Part) { p.HeldByMember = true }}
		var parts []Part
		for i := range rapid.IntRange(0, 6).Draw(t, "objects") {
			parts = append(parts, part(fmt.Sprint(i), rapid.IntRange(0, 3).Draw(t, "seconds"), rapid.SampledFrom(changes).Draw(t, "state"), rapid.SampledFrom(changes).Draw(t, "state")))
		}
		r := Fold(7, foldedAt, parts)
		shuffled := append([]Part(nil), parts...)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(parts), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := Fold(7, foldedAt, shuffled); !reflect.DeepEqual(r, again) {
			t.Fatalf("%+v\n%+v", r, again)
		}
		passes := r.Applied && r.Health == hubv1.HealthHealthy && !r.PassingSince.IsZero()
		for _, p := range parts {
			if passes && !p.isThere() {
				t.Fatalf("the bundle passes without %+v", p)
			}
			if p.isRefused() && !r.Refused {
				t.Fatalf("%+v is lost in %+v", p, r)
			}
		}
		if r.Message != "" && !strings.Contains(r.Message, ": ") {
			t.Fatalf("the message %q names no object", r.Message)
		}
	})
}
