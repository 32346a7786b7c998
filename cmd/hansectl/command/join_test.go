package command

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestBadInputOfJoinIsRefusedBeforeAnythingIsRead(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no name":                     {[]string{"join"}, "NAME is missing"},
		"two names":                   {[]string{"join", "a", "b"}, `unexpected argument "b"`},
		"a name that is no label":     {[]string{"join", "A_1", "--member-kubeconfig", "x"}, `NAME "A_1"`},
		"no kubeconfig":               {[]string{"join", "a"}, "--member-kubeconfig"},
		"an unknown flag":             {[]string{"join", "a", "--regoin", "x"}, "unknown flag: --regoin; did you mean --region?"},
		"an unknown dry run":          {[]string{"join", "a", "--member-kubeconfig", "x", "--dry-run", "server"}, `--dry-run "server"`},
		"a token that is too short":   {[]string{"join", "a", "--member-kubeconfig", "x", "--token-lifetime", "1m"}, "--token-lifetime 1m0s"},
		"a token that never ends":     {[]string{"join", "a", "--member-kubeconfig", "x", "--token-lifetime", "0"}, "--token-lifetime 0s"},
		"a lifetime for the hub":      {[]string{"rotate", "a", "--token-lifetime", "1h"}, "--token-lifetime is not possible without --member-kubeconfig"},
		"an unknown leave policy":     {[]string{"join", "a", "--member-kubeconfig", "x", "--leave-policy", "Keep"}, `--leave-policy "Keep"`},
		"a selector that is none":     {[]string{"join", "a", "--member-kubeconfig", "x", "--allowed-namespaces", "a b"}, `--allowed-namespaces "a b"`},
		"an empty selector":           {[]string{"join", "a", "--member-kubeconfig", "x", "--allowed-namespaces", ""}, "--allowed-namespaces"},
		"a label that is none":        {[]string{"join", "a", "--member-kubeconfig", "x", "--labels", "a/b/c=1"}, "label a/b/c=1"},
		"a region that is no label":   {[]string{"join", "a", "--member-kubeconfig", "x", "--region", "far away"}, "topology.kubernetes.io/region=far away"},
		"two regions":                 {[]string{"join", "a", "--member-kubeconfig", "x", "--region", "b", "--labels", hubv1.RegionLabel + "=c"}, "the values differ"},
		"an unknown policy":           {[]string{"join", "a", "--member-kubeconfig", "x", "--admission-policy=on"}, `--admission-policy "on"`},
		"a grant of everything":       {[]string{"join", "a", "--member-kubeconfig", "x", "--grant", "*/*"}, `--grant "*/*"`},
		"an ungrant of everything":    {[]string{"join", "a", "--member-kubeconfig", "x", "--ungrant", "*"}, `--ungrant "*"`},
		"a grant of a subresource":    {[]string{"join", "a", "--member-kubeconfig", "x", "--grant", "apps/deployments/scale"}, `--grant "apps/deployments/scale"`},
		"a key without a tunnel":      {[]string{"join", "a", "--member-kubeconfig", "x", "--key", "SHA256:x"}, "--key is not possible without --tunnel"},
		"a key that is none":          {[]string{"join", "a", "--tunnel", "--key", "SHA256:x"}, `--key ["SHA256:x"]`},
		"a kubeconfig with a tunnel":  {[]string{"join", "a", "--tunnel", "--member-kubeconfig", "x"}, "--member-kubeconfig is not possible with --tunnel"},
		"a grant with a tunnel":       {[]string{"join", "a", "--tunnel", "--grant", "configmaps"}, "--grant is not possible with --tunnel"},
		"logs with a tunnel":          {[]string{"join", "a", "--tunnel", "--read-logs"}, "--read-logs is not possible with --tunnel"},
		"an unknown command":          {[]string{"jion"}, `there is no command "jion"; did you mean join?`},
		"copies of no kind":           {[]string{"get"}, "KIND is missing"},
		"copies of a name everywhere": {[]string{"get", "cm/a", "-A"}, "a name and --all-namespaces exclude each other"},
		"a template that is none":     {[]string{"clusters", "-o", "jsonpath={.a"}, "error parsing jsonpath"},
		"an aim that is none":         {[]string{"wait", "cm/a", "--for", "ready"}, `--for "ready": want scheduled, applied, healthy`},
		"no aim":                      {[]string{"wait", "cm/a"}, "--for is missing"},
		"clusters by no selector":     {[]string{"suspend", "placement/web", "--selector", "tier in"}, `--selector "tier in" is not a label selector`},
		"what cannot be suspended":    {[]string{"suspend", "deployment/web"}, `KIND "deployment": want placement or clusterplacement`},
		"a wide status of many":       {[]string{"status", "-o", "wide"}, "--watch and -o wide need one object"},
		"an unknown output":           {[]string{"clusters", "-o", "wide"}, `--output "wide"`},
		"a status without a name":     {[]string{"status", "prometheus"}, "NAME is missing"},
		"an uninstall with something": {[]string{"uninstall", "now"}, `unexpected argument "now"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error that says %q", err, tc.want)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "--help") {
				t.Errorf("want a hint on a line of its own, got %q", err)
			}
			exits(t, err, 2)
		})
	}
}

func TestJoinRefusesASecondNameForACluster(t *testing.T) {
	member := func(name, id string, change ...func(*hubv1.MemberCluster)) hubv1.MemberCluster {
		m := hubv1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       hubv1.MemberClusterSpec{Connection: hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{}}},
			Status:     hubv1.MemberClusterStatus{ClusterID: id},
		}
		for _, c := range change {
			c(&m)
		}
		return m
	}
	tests := map[string]struct {
		members  []hubv1.MemberCluster
		existing bool
		refused  string
	}{
		"a new cluster joins":                           {members: []hubv1.MemberCluster{member("b", "id-b")}},
		"the same again refreshes":                      {members: []hubv1.MemberCluster{member("a", "id-a")}, existing: true},
		"one that the hub has never reached is renewed": {members: []hubv1.MemberCluster{member("a", "")}, existing: true},
		"the same cluster under another name is refused": {
			members: []hubv1.MemberCluster{member("b", "id-a")}, refused: "is a member already, as membercluster/b",
		},
		"another cluster under the same name is refused": {
			members: []hubv1.MemberCluster{member("a", "id-b")}, refused: "membercluster/a is another cluster (kube-system uid id-b, this one is id-a)",
		},
		"one that leaves is refused": {
			members: []hubv1.MemberCluster{member("a", "id-a", func(m *hubv1.MemberCluster) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })},
			refused: "membercluster/a is leaving",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			existing, err := admitted(tc.members, "a", "id-a")
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got %v, want an error that says %q", err, tc.refused)
				}
				return
			}
			if err != nil || (existing != nil) != tc.existing {
				t.Errorf("got %v, %v", existing, err)
			}
		})
	}
}

func TestALeaseIsOverOnlyIfNobodyRenewsIt(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	held := func(by string, renewed int) holder {
		return holder{name: by, renewed: second(renewed), lasts: 15 * time.Second}
	}
	free := holder{renewed: second(1), lasts: time.Second}
	type sight struct {
		at  int
		now holder
	}
	tests := map[string]struct {
		sights []sight
		over   bool
		led    string
	}{
		"one that was never renewed since it was seen runs out":       {[]sight{{0, held("a", 0)}, {10, held("a", 0)}, {15, held("a", 0)}}, true, ""},
		"one that is old by its own clock is waited for all the same": {[]sight{{1000, held("a", 0)}, {1010, held("a", 0)}}, false, ""},
		"one that is renewed is led":                                  {[]sight{{0, held("a", 0)}, {2, held("a", 2)}}, false, "a"},
		"a free one that is taken is led":                             {[]sight{{0, free}, {2, held("b", 2)}}, false, "b"},
		"one that is given back and not taken again is over":          {[]sight{{0, held("a", 0)}, {2, free}, {7, free}}, true, ""},
		"one that was given back just now is waited for":              {[]sight{{0, held("a", 0)}, {2, free}, {6, free}}, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := watching{}
			var over bool
			var err error
			for _, s := range tc.sights {
				if over, err = w.see(s.now, second(s.at)); err != nil {
					break
				}
			}
			if tc.led != "" {
				if err == nil || !strings.Contains(err.Error(), "renewed by "+tc.led) {
					t.Fatalf("got %v, want an error that names %s", err, tc.led)
				}
				return
			}
			if err != nil || over != tc.over {
				t.Errorf("got %t, %v, want %t", over, err, tc.over)
			}
		})
	}
}

func TestOnlyTheUserSaysThatAClusterIsTheHub(t *testing.T) {
	for name, tc := range map[string]struct {
		flagged   bool
		clusterID string
		want      string
	}{
		"another cluster joins":                             {false, "member-id", ""},
		"the hub joins if the user says that it is the hub": {true, "hub-id", ""},
		"a cluster with the hub's identity is not believed": {false, "hub-id", "pass --hub-itself if it is the hub"},
		"a cluster that is not the hub does not become it":  {true, "member-id", "is not the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkHubItself(tc.flagged, "hub-id", tc.clusterID)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("want %q: %v", tc.want, err)
			}
		})
	}
}
