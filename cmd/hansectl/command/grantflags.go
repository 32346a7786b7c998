package command

import "github.com/spf13/pflag"

// grantFlags are the flags that change the hub's rights on a member.
type grantFlags struct {
	grants, ungrants   []string
	operators          []string // paths of files with an operator's rights
	ungrantedOperators []string
	optional           map[string]*bool // by the names of the values in optionalRights
	policy             string

	given func(flag string) bool // reports whether the user gave a flag
}

// optionalRights are the rights that a value of the chart hanse-member grants and a flag of join sets.
var optionalRights = []struct {
	flag, value, usage string
	byDefault          bool // a new member grants it
}{
	{"create-namespaces", "createNamespaces", "Let the hub create namespaces that objects need.", true},
	{"list-workloads", "listWorkloads", "Let the hub list workloads and pods, so that hansectl tree shows the objects that controllers made for a copy, and hansectl get --clusters all of them.", false},
	{"list-events", "listEvents", "Let the hub list events of all namespaces, for hansectl events.", false},
	{"read-logs", "readLogs", "Let the hub read the logs of all pods, for hansectl logs.", false},
}

func (g *grantFlags) addTo(f *pflag.FlagSet) {
	f.StringSliceVar(&g.grants, "grant", nil, "Kind that the hub may write on the member, as resource.group or group/resource; added to what is granted. Can be repeated, or hold several, separated by commas.")
	f.StringSliceVar(&g.ungrants, "ungrant", nil, "Kind that the hub may not write on the member any more. Can be repeated, or hold several, separated by commas.")
	f.StringArrayVar(&g.operators, grantOperatorFlag, nil, "File with the output of hansectl operators rbac: the kinds and rules that the hub needs to install an operator; added to what is granted. Can be repeated.")
	f.StringArrayVar(&g.ungrantedOperators, ungrantOperatorFlag, nil, "Name of an operator whose rules the hub loses on the member. Its kinds stay granted. Can be repeated.")
	g.optional = map[string]*bool{}
	for _, right := range optionalRights {
		g.optional[right.value] = f.Bool(right.flag, right.byDefault, right.usage)
	}
	f.StringVar(&g.policy, admissionPolicyFlag, string(policyOn), `"true" installs an admission policy on the member, which limits what the hub may write there. "adopt" also lets the hub take over objects that exist already. "false" removes the policy. A member that joined before changes only if the flag is given.`)
}

func (g *grantFlags) change() (change grantChange, err error) {
	if change.add, err = parseGrants("--grant", g.grants); err != nil {
		return change, err
	}
	if change.remove, err = parseGrants("--ungrant", g.ungrants); err != nil {
		return change, err
	}
	change.ungrantedOperators = g.ungrantedOperators
	change.optional = map[string]bool{}
	for _, right := range optionalRights {
		if g.given(right.flag) {
			change.optional[right.value] = *g.optional[right.value]
		}
	}
	if g.given(admissionPolicyFlag) {
		if change.policy, err = parsePolicyChoice(g.policy); err != nil {
			return change, err
		}
	}
	return change, nil
}
