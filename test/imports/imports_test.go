// Package imports checks which packages import which. The tables of this file are the only rules of the layout that
// docs/architecture.md draws. A package outside of them fails the test.
package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/hanse-dev/hanse/"

// layers has the folders at the top, from the ground. A package imports packages of its own folder and of lower layers.
var layers = [][]string{{"api", "charts"}, {"internal"}, {"member", "overrides"}, {"bundles"}, {"placement"}, {"view"}, {"hub"}, {"cmd"}, {"provider"}, {"test", "hack"}}

// pure are the packages that decide, render, judge or merge: a name with a final slash stands for a whole folder. They
// import no client, clock or logger, and of this module only each other, and the packages of plain.
var pure = []string{
	"bundles/crd", "bundles/manifest", "bundles/operator", "internal/canonical", "internal/cel", "member/content", "member/epoch", "member/health", "member/openapi",
	"hub/events/format", "hub/inventory/profile", "member/rollup", "member/system", "overrides", "placement", "placement/", "view/preview",
}

// plain are packages with types and without decisions, which pure packages read.
var plain = []string{"api/v1alpha1", "member"}

// libraries are all that pure packages import from outside, besides the standard library without unsafe.
var libraries = []string{
	"github.com/distribution/reference", "github.com/evanphx/json-patch/v5", "github.com/fluxcd/cli-utils/pkg/kstatus", "github.com/google/cel-go",
	"github.com/robfig/cron/v3", "go.yaml.in/yaml/v3", "k8s.io/api", "k8s.io/apiextensions-apiserver/pkg/apis", "k8s.io/apiextensions-apiserver/pkg/apiserver",
	"k8s.io/apimachinery", "k8s.io/apiserver/pkg/apis/cel", "k8s.io/apiserver/pkg/cel", "k8s.io/component-helpers/resource",
	"k8s.io/kube-openapi/pkg/validation", "k8s.io/pod-security-admission", "k8s.io/utils/lru", "k8s.io/utils/ptr", "sigs.k8s.io/crdify/pkg/config",
	"sigs.k8s.io/crdify/pkg/validations", "sigs.k8s.io/json", "sigs.k8s.io/kubefed/pkg/apis/scheduling/v1alpha1",
	"sigs.k8s.io/kubefed/pkg/controller/util/planner", "sigs.k8s.io/structured-merge-diff/v6", "sigs.k8s.io/yaml",
}

// effects are the packages of the standard library by which a package reaches the world outside of it.
var effects = []string{"log", "log/slog", "net", "net/http", "os", "os/exec", "syscall"}

// clock are the functions of package time that read a clock. Pure packages get the time as a value.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Tick", "Until"}

// A rule says that packages below from import no package below to. The packages below except may.
type rule struct {
	from, to, except []string
	why              string
}

// rules has the rules that no layer expresses. A folder stands for all packages below it.
var rules = []rule{
	{from: []string{"api"}, to: []string{"k8s.io/client-go", "k8s.io/apiserver"}, why: "users import api without the libraries of the hub"},
	{from: []string{"internal/answer"}, to: []string{"k8s.io", module}, why: "the reader knows what an answer holds"},
	{from: []string{"view"}, to: []string{"net/http", "os", "k8s.io/client-go/rest", "sigs.k8s.io/controller-runtime/pkg/client"}, why: "the callers of view read"},
	{from: []string{"cmd", "hub", "view", "placement", "overrides", "member", "internal", "test"}, to: []string{"helm.sh/helm"}, why: "only bundles/chart imports helm"},
	{from: []string{"bundles/chart"}, to: []string{"helm.sh/helm/v4/pkg/action", "helm.sh/helm/v4/pkg/kube", "k8s.io/client-go", "net", "sigs.k8s.io/controller-runtime"}, except: []string{"k8s.io/client-go/kubernetes/scheme"}, why: "a rendering talks to no server"},
	{from: []string{"bundles/chart/child"}, to: []string{"helm.sh/helm", module + "bundles/manifest"}, why: "the child passes on what bundles/chart does"},
	{from: []string{"hub", "cmd/hanse-hub", "view"}, to: []string{module + "bundles/chart"}, except: []string{module + "bundles/chart/child"}, why: "the hub outlives charts: it renders them in a child process"},
	{from: []string{"cmd/hansectl", "view", "hub/console", "hub/schedule", "hub/dispatch"}, to: []string{module + "bundles/chart/child"}, why: "only the hub's bundles are rendered in a child process"},
	{from: []string{"cmd", "member", "view", "hub/admission", "hub/console", "hub/schedule"}, to: []string{"oras.land"}, why: "only hub/bundles/fetch talks to registries"},
	{from: []string{"hub/bundles/fetch", "hub/tracing"}, to: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, why: "the callers read the hub"},
	{from: []string{"member/agent", "member/handshake", "hub/tunnel"}, to: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, why: "an agent passes requests on unread"},
	{from: []string{"cmd/hanse-member"}, to: []string{module}, except: []string{module + "member/agent", module + "member/handshake"}, why: "an agent has no code of the hub"},
	{from: []string{"hub"}, to: []string{module + "member/agent"}, why: "the agent runs on members"},
	{from: []string{"cmd/hansectl"}, to: []string{module + "hub"}, except: []string{module + "hub/store/inputs", module + "hub/store/scopes", module + "hub/views"}, why: "hansectl imports no controller"},
	{from: []string{"provider"}, to: []string{module}, except: []string{module + "api", module + "member/credential", module + "provider"}, why: "authors of controllers import the provider without the hub"},
	{from: []string{"test/chaos"}, to: []string{module}, except: []string{module + "api", module + "test"}, why: "the oracle renders with code of its own"},
}

// wings are the folders below hub, without those in shared: the steps of an object. They do not import each other.
// console asks the hub as a user does.
var shared = []string{"access", "pace", "store", "tracing"}

var wingExceptions = map[string][]string{"console": {"views"}}

// doors are the packages that talk to members. Only the package hub itself, and the packages that test, import them.
var doors = []string{"member/apply", "member/cache", "member/connect", "member/discovery", "member/read"}

type pkg struct {
	ImportPath           string
	Imports, TestImports []string
}

func TestImportsPointDown(t *testing.T) {
	packages := map[string]*pkg{}
	root := filepath.Join("..", "..")
	// The test reads the files itself. Go's test cache sees them, but not the output of go list.
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin" || isModule(path) && entry.Name() != "provider"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if packages[folder] == nil {
			packages[folder] = &pkg{ImportPath: module + folder}
		}
		return packages[folder].read(t, path)
	})
	if err != nil {
		t.Fatalf("reading the packages: %v", err)
	}
	if len(packages) < 50 {
		t.Errorf("only %d packages were checked", len(packages))
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		for _, fault := range faults(*packages[folder]) {
			t.Error(fault)
		}
	}
}

// isModule reports whether a folder is a module of its own. The rules concern the provider alone of these, because
// others import it.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// read adds the imports of a file to the package. A package that decides must not read a clock in it.
func (p *pkg) read(t *testing.T, path string) error {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	to := &p.Imports
	if strings.HasSuffix(path, "_test.go") {
		to = &p.TestImports
	} else if isPure(strings.TrimPrefix(p.ImportPath, module)) {
		readsNoClock(t, files, parsed)
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: reading an import: %w", path, err)
		}
		*to = append(*to, imported)
	}
	return nil
}

func TestAnImportAgainstTheLayoutIsRefused(t *testing.T) {
	tests := map[string]struct {
		from, to string
		test     bool // the import is one of a test
		allowed  bool
	}{
		"down":                                       {from: "hub/schedule", to: module + "placement/decide", allowed: true},
		"up":                                         {from: "view", to: module + "hub/views"},
		"a test, up":                                 {from: "overrides", to: module + "hub", test: true, allowed: true},
		"between folders of one layer":               {from: "overrides", to: module + "member/health"},
		"from a folder of no layer":                  {from: "newfolder", to: "fmt"},
		"of a client by a decision":                  {from: "placement/rollout", to: "sigs.k8s.io/controller-runtime/pkg/client"},
		"of a client by a new decision":              {from: "placement/new", to: "k8s.io/client-go/rest"},
		"of a client by a test of a decision":        {from: "placement/guard", to: "k8s.io/client-go/rest", test: true},
		"of a logger by a decision":                  {from: "placement", to: "github.com/go-logr/logr"},
		"of a logger of Go by a decision":            {from: "placement/decide", to: "log/slog"},
		"of a clock by a decision":                   {from: "placement/decide", to: "k8s.io/utils/clock"},
		"of files by a merge":                        {from: "member/rollup", to: "os"},
		"of an impure room by a pure one":            {from: "member/health", to: module + "member/credential"},
		"of another decision by a decision":          {from: "placement/decide", to: module + "placement/rollout", allowed: true},
		"of the runner of crdify":                    {from: "bundles/crd", to: "sigs.k8s.io/crdify/pkg/runner"},
		"of the clients of kubefed":                  {from: "placement/replicas", to: "sigs.k8s.io/kubefed/pkg/client/generic"},
		"between wings":                              {from: "hub/schedule", to: module + "hub/dispatch"},
		"of a deep package of another wing":          {from: "hub/report/policies", to: module + "hub/admission/protect"},
		"of a shared wing":                           {from: "hub/dispatch/epochs", to: module + "hub/store/scopes", allowed: true},
		"of a wing by a shared one":                  {from: "hub/store/inputs", to: module + "hub/dispatch"},
		"of the views by the console":                {from: "hub/console", to: module + "hub/views", allowed: true},
		"of a part that talks to members":            {from: "hub/dispatch", to: module + "member/apply"},
		"of a part that talks to members by hub":     {from: "hub", to: module + "member/apply", allowed: true},
		"between parts that talk to members":         {from: "member/cache", to: module + "member/apply"},
		"of kinds by the reader of members":          {from: "member/read", to: module + "member/discovery", allowed: true},
		"of a controller by hansectl":                {from: "cmd/hansectl/command", to: module + "hub/schedule"},
		"of the hub by the agent":                    {from: "cmd/hanse-member", to: module + "member/connect"},
		"of a client by the agent's proxy":           {from: "member/agent", to: "k8s.io/client-go/rest"},
		"of the agent by the hub":                    {from: "hub/tunnel", to: module + "member/agent"},
		"of helm":                                    {from: "hub/bundles", to: "helm.sh/helm/v4/pkg/engine"},
		"of a chart's rendering by the hub":          {from: "hub/bundles", to: module + "bundles/chart"},
		"of the child by the hub's bundles":          {from: "hub/bundles", to: module + "bundles/chart/child", allowed: true},
		"of the child by hansectl":                   {from: "cmd/hansectl/command", to: module + "bundles/chart/child"},
		"of a registry":                              {from: "hub/schedule", to: "oras.land/oras-go/v2/registry/remote"},
		"of the network by a rendering":              {from: "bundles/chart", to: "net"},
		"of a path by a rendering":                   {from: "bundles/chart", to: "net/netip", allowed: true},
		"of the links by the provider":               {from: "provider", to: module + "member/connect"},
		"of the hub by the provider's example":       {from: "provider/example", to: module + "hub"},
		"of tokens by the provider":                  {from: "provider", to: module + "member/credential", allowed: true},
		"of the hub's code by the oracle":            {from: "test/chaos", to: module + "overrides"},
		"of a client by view":                        {from: "view", to: "k8s.io/client-go/rest"},
		"of the libraries of an API server by api":   {from: "api/v1alpha1", to: "k8s.io/client-go/rest"},
		"of Kubernetes by the bound of an answer":    {from: "internal/answer", to: "k8s.io/apimachinery/pkg/api/errors"},
		"of this module by the bound of an answer":   {from: "internal/answer", to: module + "api/v1alpha1"},
		"of the hub by the informer":                 {from: "internal/informer", to: module + "member"},
		"of a client by the network code of bundles": {from: "hub/bundles/fetch", to: "k8s.io/client-go/rest"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := pkg{ImportPath: module + tc.from, Imports: []string{tc.to}}
			if tc.test {
				p.Imports, p.TestImports = nil, []string{tc.to}
			}
			if got := faults(p); (len(got) == 0) != tc.allowed {
				t.Errorf("%s imports %s: %v", tc.from, tc.to, got)
			}
		})
	}
}

// faults returns a sentence for each import of a package that the tables do not allow.
func faults(p pkg) (out []string) {
	from := strings.TrimPrefix(p.ImportPath, module)
	if layerOf(from) < 0 {
		return []string{from + ": the folder is in no layer"}
	}
	for _, to := range p.Imports {
		if why := refused(from, to); why != "" {
			out = append(out, fmt.Sprintf("%s imports %s: %s", from, strings.TrimPrefix(to, module), why))
		}
	}
	for _, to := range p.TestImports {
		client := below(to, "k8s.io/client-go") && !below(to, "k8s.io/client-go/kubernetes/scheme")
		if isPure(from) && (client || below(to, "sigs.k8s.io/controller-runtime")) {
			out = append(out, fmt.Sprintf("a test of %s imports %s: a decision is tested with values alone", from, to))
		}
	}
	return out
}

// refused returns why a package must not import another one, or "".
func refused(from, to string) string {
	for _, r := range rules {
		if belowAny(from, r.from) && belowAny(to, r.to) && !belowAny(to, r.except) {
			return r.why
		}
	}
	own, ours := strings.CutPrefix(to, module)
	if isPure(from) && !mayPure(own, to, ours) {
		return "a package that decides imports no client, clock or logger, and only packages that decide"
	}
	if !ours || top(from) == "test" {
		return ""
	}
	switch {
	case top(from) != top(own) && layerOf(own) >= layerOf(from):
		return "imports point down"
	case slices.Contains(doors, own) && from != "hub" && top(from) != "test" && !below(from, own) && from+own != "member/readmember/discovery":
		return "only package hub sees what talks to members"
	case top(from) == "hub" && top(own) == "hub" && from != "hub":
		a, b := second(from), second(own)
		if a != b && !slices.Contains(shared, b) && !slices.Contains(wingExceptions[a], b) {
			return "wings of the hub do not import each other"
		}
	}
	return ""
}

// mayPure reports whether a pure package may import a package: own is its path in this module, if it is ours.
func mayPure(own, to string, ours bool) bool {
	if ours {
		return isPure(own) || slices.Contains(plain, own)
	}
	if domain, _, _ := strings.Cut(to, "/"); !strings.Contains(domain, ".") {
		return to != "unsafe" && !slices.Contains(effects, to)
	}
	return belowAny(to, libraries)
}

func isPure(path string) bool {
	return slices.ContainsFunc(pure, func(p string) bool { return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) })
}

func layerOf(path string) int {
	return slices.IndexFunc(layers, func(folders []string) bool { return slices.Contains(folders, top(path)) })
}

func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func second(path string) string {
	_, rest, _ := strings.Cut(path, "/")
	return top(rest)
}

// below reports whether a path is a folder or below it. The network without its packages for addresses is "net".
func below(path, folder string) bool {
	return path == folder || folder != "net" && strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func belowAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return below(path, f) })
}

// readsNoClock reports uses of the functions of clock in a file.
func readsNoClock(t *testing.T, files *token.FileSet, file *ast.File) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, s.Sel.Name) {
				t.Errorf("%s: time.%s reads a clock: a package that decides gets the time as a value", files.Position(n.Pos()), s.Sel.Name)
			}
		}
		return true
	})
}
