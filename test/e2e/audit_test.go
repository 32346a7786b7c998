package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// auditEvent has the fields of an audit event that the tests read: the user, the request and the response.
type auditEvent struct {
	Verb, Stage    string
	StageTimestamp metav1.MicroTime
	User           struct{ Username string }
	UserAgent      string
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	RequestURI     string
	Annotations    map[string]string
}

// provoked are requests that the API server refuses, because the hub has no rights on their kinds. Tests cause these
// requests on purpose: a test places the first kind, lists the second one, and names an object of the third one in a
// pod template.
var provoked = []string{"list rbac.authorization.k8s.io/clusterroles", "list /persistentvolumeclaims", "list /serviceaccounts"}

// account is a ServiceAccount that a chart creates, with the names of its roles and the clusters where it sends
// requests. It has the same roles on all these clusters.
type account struct {
	name     string
	roles    []string
	clusters []*fleet.Cluster
}

func accounts() []account {
	return []account{
		{"hanse-hub", []string{"hanse-hub", "hanse-hub-federated-kinds"}, []*fleet.Cluster{suite.Hub}},
		{"hanse", []string{"hanse"}, []*fleet.Cluster{suite.Members[shanghai], suite.Members[singapore], suite.Members[frankfurt]}},
	}
}

// requests are the permissions that each ServiceAccount used, as "verb group/resource". The outer key is the name of
// the account.
type requests map[string]map[string]bool

// checkRefused returns the permissions that the ServiceAccounts of both charts used in this run. Its error lists every
// refused request, because a role lacks a rule for this request.
func checkRefused() (requests, error) {
	var errs []error
	all := requests{}
	for _, a := range accounts() {
		all[a.name] = map[string]bool{}
		for _, cluster := range a.clusters {
			until := int64(math.MaxInt64)
			if cluster == suite.Hub && suite.audited > 0 {
				until = suite.audited
			}
			used, refused, err := readAudit(cluster.AuditLog, until, "system:serviceaccount:"+hubv1.SystemNamespace+":"+a.name)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", cluster.Name, err))
			}
			maps.Copy(all[a.name], used)
			for _, r := range refused {
				// Tests kill Frankfurt's API server. A restarted API server refuses every request until it has loaded the roles.
				if cluster != suite.Members[frankfurt] && !slices.Contains(provoked, r) {
					errs = append(errs, fmt.Errorf("%s refused %s: a rule is missing", cluster.Name, r))
				}
			}
		}
	}
	return all, errors.Join(errs...)
}

// checkUnused compares the used permissions with the roles of both charts. Its error lists every unused verb, because
// the role grants too much.
func checkUnused(ctx context.Context, all requests) error {
	var errs []error
	for _, a := range accounts() {
		rules, err := rulesOf(ctx, a.clusters[0], a.roles)
		if err != nil {
			return err
		}
		for _, r := range unused(rules, all[a.name]) {
			errs = append(errs, fmt.Errorf("role %s: %s was never used: the rule can go", a.roles[0], r))
		}
	}
	return errors.Join(errs...)
}

// write writes the requests to a file atomically, so that another part of the test run never reads an incomplete file.
func (r requests) write(file string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the requests of this shard: %w", err)
	}
	if err := os.WriteFile(file+".partial", raw, 0o600); err != nil {
		return fmt.Errorf("writing the requests of this shard: %w", err)
	}
	return os.Rename(file+".partial", file)
}

// addShards adds the requests of all shards, which it reads from the files in a folder. A shard is one of several
// processes that each run a part of the suite. addShards returns false if a file is still empty, because the shard of
// this file has not ended.
func (r requests) addShards(folder string) (complete bool, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("reading the requests of a shard: %w", err)
		}
		if len(raw) == 0 {
			return false, nil
		}
		var shard requests
		if err := json.Unmarshal(raw, &shard); err != nil {
			return false, fmt.Errorf("reading the requests of a shard in %s: %w", file, err)
		}
		for name, used := range shard {
			maps.Copy(r[name], used)
		}
	}
	return true, nil
}

// rulesOf returns the rules of the named ClusterRoles, and of the Roles in hanse-system with one of these names.
func rulesOf(ctx context.Context, c *fleet.Cluster, names []string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, name := range names {
		var role rbacv1.ClusterRole
		if err := c.Get(ctx, types.NamespacedName{Name: name}, &role); err != nil {
			return nil, fmt.Errorf("reading ClusterRole %s of %s: %w", name, c.Name, err)
		}
		rules = append(rules, role.Rules...)
	}
	var roles rbacv1.RoleList
	if err := c.List(ctx, &roles); err != nil {
		return nil, fmt.Errorf("listing Roles of %s: %w", c.Name, err)
	}
	for _, role := range roles.Items {
		if slices.Contains(names, role.Name) && role.Namespace == hubv1.SystemNamespace {
			rules = append(rules, role.Rules...)
		}
	}
	return rules, nil
}

// readAudit returns the permissions that a user used, and the permissions that the API server refused, both as "verb
// group/resource". It reads the audit log up to the byte offset until. A refusal is left out if the same request was
// granted later: an API server that has just started does not have the roles yet.
func readAudit(path string, until int64, user string) (used map[string]bool, refused []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	used = map[string]bool{}
	pending := map[string]string{} // the refused permissions, by request
	lines := bufio.NewScanner(io.LimitReader(file, until))
	lines.Buffer(nil, 4<<20)
	var torn error // the API server may still be writing the last line
	for torn == nil && lines.Scan() {
		var e auditEvent
		if torn = json.Unmarshal(lines.Bytes(), &e); torn != nil {
			continue
		}
		if e.User.Username != user || e.ObjectRef.Resource == "" {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		what := e.Verb + " " + e.ObjectRef.APIGroup + "/" + resource
		path, _, _ := strings.Cut(e.RequestURI, "?")
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" { // an admission refusal is a 403, too
			pending[e.Verb+" "+path] = what
			continue
		}
		delete(pending, e.Verb+" "+path)
		used[what] = true
		if e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true") {
			// A watch with initial events is counted also as a list, because the hub lists if an API server does not support
			// such watches.
			used["list "+e.ObjectRef.APIGroup+"/"+resource] = true
		}
		if e.Verb == "patch" && e.ResponseStatus.Code == 201 {
			// A server-side apply that creates an object needs both permissions, patch and create.
			used["create "+e.ObjectRef.APIGroup+"/"+resource] = true
		}
	}
	if torn != nil && lines.Scan() {
		return nil, nil, fmt.Errorf("reading the audit log: %w", torn)
	}
	refused = slices.Sorted(maps.Values(pending))
	return used, slices.Compact(refused), lines.Err()
}

// unused returns the verbs that no request used on any resource of their rule, and the resources that no request named.
func unused(rules []rbacv1.PolicyRule, used map[string]bool) []string {
	var out []string
	for _, r := range rules {
		anyUsed := func(groups, resources, verbs []string) bool {
			for _, g := range groups {
				for _, res := range resources {
					for _, v := range verbs {
						if used[v+" "+g+"/"+res] {
							return true
						}
					}
				}
			}
			return false
		}
		for _, v := range r.Verbs {
			if !anyUsed(r.APIGroups, r.Resources, []string{v}) {
				out = append(out, v+" "+strings.Join(r.APIGroups, ",")+"/"+strings.Join(r.Resources, ","))
			}
		}
		for _, res := range r.Resources {
			if !anyUsed(r.APIGroups, []string{res}, r.Verbs) {
				out = append(out, "any verb on "+strings.Join(r.APIGroups, ",")+"/"+res)
			}
		}
	}
	return out
}
