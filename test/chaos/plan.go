package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Step is one thing that a user, a fault or a hand does. Only the fields that the action needs are set.
type Step struct {
	Action Action
	Key    Key
	// Target is a member, or for faults of the hub also hub or replica-N.
	Target string
	Fault  Fault
	// Value is the new content, the number of seconds, or the number of a variant.
	Value int64
	// Text is a label, or the name of the ConfigMap to which a Widget refers.
	Text string
	// Keys are the objects of a Bundle.
	Keys []Key
}

// Action is what a step does.
type Action string

// The actions: what users do, faults, and what people do by hand.
const (
	Apply    Action = "apply"    // create the object, or set its content
	Delete   Action = "delete"   // delete the object
	Recreate Action = "recreate" // delete the object and create it again at once
	Override Action = "override" // set the replicas of all Widgets of a namespace in the region of a member
	Bundle   Action = "bundle"   // set the objects of the Bundle
	Operate  Action = "operate"  // set the content of the objects of the FederatedOperator
	Label    Action = "label"    // set a label of a MemberCluster
	Cordon   Action = "cordon"   // no new objects for a member; ends with the round
	Approve  Action = "approve"  // approve the manual wave
	Confirm  Action = "confirm"  // confirm the held removals of the namespace guarded
	Rest     Action = "rest"     // do nothing for some seconds, so that faults last longer than the hub's time-outs

	Begin Action = "begin" // a fault
	End   Action = "end"   // of a fault

	Drift    Action = "drift"    // change the content of a copy on a member
	Destroy  Action = "destroy"  // delete a copy on a member
	Unbind   Action = "unbind"   // delete the binding of an object
	Forget   Action = "forget"   // delete some of the hub's own Secrets and ConfigMaps
	Undefine Action = "undefine" // delete the definition of Widgets on a member, and make it again
	BackUp   Action = "back-up"  // copy the data of the hub's etcd
	Restore  Action = "restore"  // put the copy back
)

const (
	planEdits    = 60        // the steps of a plan that are not the beginning or the end of a fault
	restoreEvery = 4         // each fourth seed restores the hub
	contents     = 1_000_000 // the number of different contents
)

// Fault is a disturbance with a beginning and an end.
type Fault string

// The faults. Those of a member's proxy have the name and arguments of `lab fault`.
const (
	killAPI   Fault = "kill-api"  // SIGKILL of the API server of a member or of the hub
	stallAPI  Fault = "stall-api" // SIGSTOP
	stallEtcd Fault = "stall-etcd"
	kill      Fault = "kill" // a hub process; it starts again at once, as a kubelet would do
	stall     Fault = "stall"
	swap      Fault = "swap-kubeconfig" // the Secret of a member has the kubeconfig of another member
	mutate    Fault = "mutate"          // a mutating webhook of a member sets a field of Widgets
)

// proxyFaults and lies are what happens to all requests of the hub to a member.
var (
	proxyFaults = []Fault{"delay 2s", "blackhole", "drop 30%", "reset 1s", "status 429 --retry-after 2s", "status 500 --percent 50", "status 503",
		"hang-watch", "hang-list"}
	lies = []Fault{"lie truncated", "lie html", "lie empty", "lie watch"}
)

// longest returns the longest duration of a fault, in edits. While the hub's API server is away each edit costs the
// time-out of its user, so these faults are short.
func (f Fault) longest() int {
	switch f {
	case kill:
		return 1
	case stallEtcd, stallAPI, killAPI:
		return 5
	}
	return 20
}

func (s Step) String() string {
	out := []string{string(s.Action)}
	for _, part := range []string{s.Target, string(s.Fault), s.Text} {
		if part != "" {
			out = append(out, part)
		}
	}
	if s.Key != (Key{}) {
		out = append(out, s.Key.String())
	}
	if s.Value != 0 {
		out = append(out, fmt.Sprint(s.Value))
	}
	if len(s.Keys) > 0 {
		out = append(out, fmt.Sprint(s.Keys))
	}
	return strings.Join(out, " ")
}

// Plan returns the steps of the round with a seed, for a hub with this number of replicas. Each fault that begins also
// ends. At most one fault at a time has the same target.
func Plan(seed uint64, replicas int) []Step {
	p := planner{Rand: rand.New(rand.NewPCG(seed, 0)), replicas: replicas, ends: map[string]int{}}
	restores := seed%restoreEvery == 0
	for i := range planEdits {
		p.endFaults(i)
		switch {
		case restores && i == planEdits/2:
			p.steps = append(p.steps, Step{Action: BackUp})
		case restores && i == planEdits*3/4:
			p.endFaults(planEdits + p.longest) // the hub is stopped, and each fault has met it by now
			p.steps = append(p.steps, Step{Action: Restore})
		}
		if p.IntN(8) == 0 {
			p.beginFault(i)
		}
		p.steps = append(p.steps, p.edit())
	}
	p.endFaults(planEdits + p.longest)
	return p.steps
}

type planner struct {
	*rand.Rand
	replicas int
	steps    []Step
	began    []Step         // faults that have not ended
	ends     map[string]int // the edit before which the fault of a target ends
	longest  int
}

func (p *planner) endFaults(before int) {
	p.began = slices.DeleteFunc(p.began, func(s Step) bool {
		if p.ends[s.Target] > before {
			return false
		}
		delete(p.ends, s.Target)
		s.Action = End
		p.steps = append(p.steps, s)
		return true
	})
}

// beginFault draws a fault and its target. It does nothing if the target has a fault.
func (p *planner) beginFault(edit int) {
	s := Step{Action: Begin, Target: p.member()}
	switch p.IntN(10) {
	case 0, 1, 2:
		s.Fault = pick(p.Rand, proxyFaults)
	case 3:
		s.Fault, s.Target = pick(p.Rand, lies), liarMember
	case 4:
		s.Fault = pick(p.Rand, []Fault{killAPI, stallAPI})
	case 5:
		s.Fault = swap
	case 6:
		s.Fault = mutate
	case 7, 8:
		s.Fault, s.Target = pick(p.Rand, []Fault{kill, kill, stall}), fmt.Sprintf("replica-%d", p.IntN(p.replicas))
	default:
		s.Fault, s.Target = pick(p.Rand, []Fault{killAPI, stallAPI, stallEtcd}), "hub"
	}
	length := 1 + p.IntN(s.Fault.longest())
	if _, busy := p.ends[s.Target]; busy {
		return
	}
	p.ends[s.Target] = edit + length
	p.longest = max(p.longest, length)
	p.began = append(p.began, s)
	p.steps = append(p.steps, s)
}

// drawn are the steps that a plan may have, with their weights. The other steps write objects.
var drawn = []struct {
	weight int // percent
	step   func(p *planner) Step
}{
	{4, func(p *planner) Step {
		return Step{Action: Label, Target: p.member(), Text: tierLabel + "=" + pick(p.Rand, []string{"prod", "prod", "dev"})}
	}},
	{4, func(p *planner) Step {
		return Step{Action: Label, Target: p.member(), Text: ringLabel + "=" + pick(p.Rand, []string{"a", "b"})}
	}},
	{2, func(*planner) Step { return Step{Action: Confirm} }},
	{2, func(p *planner) Step { return Step{Action: Cordon, Target: p.member()} }},
	{4, func(*planner) Step { return Step{Action: Approve} }},
	{4, func(p *planner) Step { return Step{Action: Override, Target: p.member(), Value: p.value()} }},
	{6, func(p *planner) Step {
		s := Step{Action: Bundle, Value: p.value()}
		for i := range bundleObjects {
			if p.IntN(4) > 0 {
				s.Keys = append(s.Keys, bundleKey(i))
			}
		}
		return s
	}},
	{2, func(p *planner) Step { return Step{Action: Operate, Value: p.value()} }},
	{4, func(p *planner) Step {
		return Step{Action: pick(p.Rand, []Action{Apply, Apply, Delete}), Key: configKey(p.IntN(configs)), Value: p.value()}
	}},
	{4, func(p *planner) Step { return Step{Action: Drift, Target: p.member(), Key: p.object()} }},
	{4, func(p *planner) Step { return Step{Action: Destroy, Target: p.member(), Key: p.object()} }},
	{3, func(p *planner) Step { return Step{Action: Unbind, Key: objectKey(kept, p.IntN(objectsIn[kept]))} }},
	{2, func(p *planner) Step { return Step{Action: Forget, Value: p.value()} }},
	{2, func(p *planner) Step { return Step{Action: Undefine, Target: p.member()} }},
	{4, func(p *planner) Step { return Step{Action: Rest, Value: 5 + p.Int64N(15)} }},
}

// edit draws an edit of a user, or a change that an administrator makes by hand.
func (p *planner) edit() Step {
	n := p.IntN(100)
	for _, d := range drawn {
		if n < d.weight {
			return d.step(p)
		}
		n -= d.weight
	}
	s := Step{Action: Apply, Key: p.object(), Value: p.value()}
	if s.Key.Namespace == referring {
		s.Text = configKey(p.IntN(configs)).Name
	}
	if n := p.IntN(10); n < 3 && s.Key.Namespace != kept && s.Key.Namespace != guarded {
		s.Action = [...]Action{Delete, Recreate, Recreate}[n]
	}
	return s
}

func (p *planner) member() string { return pick(p.Rand, Members) }

func (p *planner) value() int64 { return p.Int64N(contents) + 1 }

// object draws the key of an object that users write.
func (p *planner) object() Key {
	ns := pick(p.Rand, []string{everywhere, everywhere, selected, referring, staged, staged, guarded, kept})
	return objectKey(ns, p.IntN(objectsIn[ns]))
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
