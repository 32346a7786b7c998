// Package build compiles the lab's components from their Go modules and caches the result.
//
// Only the files below components/ determine the result. The cache key is a hash of these folders, so that a new
// version in go.mod or a change of a main package causes a new build. Each component is a separate module, so its
// requirements do not affect the lab or Hanse.
package build

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// component describes one binary and the files that the build copies from its module.
type component struct {
	onDemand bool              // true if only callers that name the component need it
	name     string            // the folder under components/, also the name of the binary
	module   string            // the module that sets the version; empty if the folder has the whole source
	pkg      string            // the main package
	programs []string          // names of the symbolic links to the binary
	stamps   map[string]string // string variables that the linker sets
	tags     string            // build tags
	share    map[string]string // glob patterns of the module's files and folders to keep, by folder
	image    string            // name of a program's image in the operator's chart, without the registry
}

// fill returns a replacer that puts the version of a module into program names, linker variables and folder names.
func fill(version string) *strings.Replacer {
	parts := strings.SplitN(strings.TrimPrefix(version, "v")+"..", ".", 3)
	return strings.NewReplacer("{version}", version, "{release}", strings.TrimPrefix(version, "v"), "{major}", parts[0], "{minor}", parts[1])
}

const (
	kubeVersion   = "k8s.io/component-base/version"
	clientVersion = "k8s.io/client-go/pkg/version"
	kwokStages    = "kwok-stages"

	// CertManager is the name of the cert-manager component, which is compiled only on demand.
	CertManager = "cert-manager"

	// JobSet is the name of the JobSet component, which is compiled only on demand.
	JobSet = "jobset"

	// Prometheus is the name of the Prometheus component and of its program. The component is compiled only on demand.
	Prometheus = "prometheus"
)

// ChartOperators are the operators that run only as pods on real nodes, from the charts of their authors.
var ChartOperators = []string{CertManager, JobSet}

var components = []component{
	{
		name:     "kubernetes",
		module:   "k8s.io/kubernetes",
		pkg:      ".",
		programs: []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"},
		stamps: map[string]string{
			kubeVersion + ".gitVersion": "{version}", clientVersion + ".gitVersion": "{version}",
			kubeVersion + ".gitMajor": "{major}", clientVersion + ".gitMajor": "{major}",
			kubeVersion + ".gitMinor": "{minor}", clientVersion + ".gitMinor": "{minor}",
			kubeVersion + ".gitTreeState": "clean", clientVersion + ".gitTreeState": "clean",
		},
	},
	{
		name:     "kwok",
		module:   "sigs.k8s.io/kwok",
		pkg:      "sigs.k8s.io/kwok/cmd/kwok",
		programs: []string{"kwok"},
		share: map[string]string{
			kwokStages + "/node":  "kustomize/stage/node/fast/node-*.yaml",
			kwokStages + "/lease": "kustomize/stage/node/heartbeat-with-lease/node-*.yaml",
			kwokStages + "/pod":   "kustomize/stage/pod/fast/pod-*.yaml",
		},
	},
	prometheusOperator("prometheus-operator"),
	prometheusOperator("prometheus-operator-older"),
	{name: "pause", pkg: ".", programs: []string{"pause"}},
	{
		onDemand: true,
		name:     CertManager,
		module:   "github.com/cert-manager/cert-manager",
		pkg:      ".",
		programs: []string{"cert-manager-controller", "cert-manager-webhook", "cert-manager-cainjector"},
		stamps:   map[string]string{"github.com/cert-manager/cert-manager/pkg/util.AppVersion": "{version}"},
		share: map[string]string{
			"charts":                          "deploy/charts/" + CertManager,
			"charts/" + CertManager + "/crds": "deploy/crds/*.yaml",
		},
		image: "jetstack/{program}:{version}",
	},
	{
		onDemand: true,
		name:     JobSet,
		module:   "sigs.k8s.io/jobset",
		pkg:      "sigs.k8s.io/jobset",
		programs: []string{"manager"},
		share:    map[string]string{"charts": "charts/" + JobSet},
		image:    "k8s-staging-images/jobset/jobset:main",
	},
	{
		onDemand: true,
		name:     Prometheus,
		module:   "github.com/prometheus/prometheus",
		pkg:      "github.com/prometheus/prometheus/cmd/prometheus",
		programs: []string{Prometheus},
		tags:     "remove_all_sd", // leaves out the service discovery clients of clouds
	},
}

// needed returns the components that every lab needs, or those with the given names.
func needed(names []string) ([]component, error) {
	for _, name := range names {
		if !slices.ContainsFunc(components, func(c component) bool { return c.name == name }) {
			return nil, fmt.Errorf("no component is called %q", name)
		}
	}
	var all []component
	for _, c := range components {
		if len(names) == 0 && !c.onDemand || slices.Contains(names, c.name) {
			all = append(all, c)
		}
	}
	return all, nil
}

// prometheusOperator returns the component for one version of the operator. All versions require the same libraries,
// which are therefore compiled once.
func prometheusOperator(folder string) component {
	return component{
		name:     folder,
		module:   "github.com/prometheus-operator/prometheus-operator",
		pkg:      "github.com/prometheus-operator/prometheus-operator/cmd/operator",
		programs: []string{Program("prometheus-operator", "{version}")},
		stamps:   map[string]string{"github.com/prometheus/common/version.Version": "{release}"},
		share: map[string]string{
			"crds/prometheus-operator/{version}":        "example/prometheus-operator-crd/*.yaml",
			"deployments/prometheus-operator/{version}": "example/rbac/prometheus-operator/prometheus-operator-*.yaml",
		},
	}
}

// Program returns the name of an operator's program for one version.
func Program(operator, version string) string { return operator + "-" + version }

// Versions returns the versions of an operator whose programs are in the folder bin, the oldest first.
func Versions(bin, operator string) ([]string, error) {
	programs, err := filepath.Glob(filepath.Join(bin, Program(operator, "v*")))
	if err != nil || len(programs) == 0 {
		return nil, fmt.Errorf("%s has no program of %s", bin, operator)
	}
	var versions []string
	for _, program := range programs {
		versions = append(versions, strings.TrimPrefix(filepath.Base(program), Program(operator, "")))
	}
	semver.Sort(versions)
	return versions, nil
}

// Built is a complete entry of the build cache: a folder with compiled components of the lab.
type Built struct{ dir string }

// Bin returns the folder with all programs. envtest can use it as KUBEBUILDER_ASSETS.
func (b Built) Bin() string { return filepath.Join(b.dir, "bin") }

// KwokStages returns the Stage manifests that make nodes and pods ready at once.
func (b Built) KwokStages() ([]string, error) {
	return manifests(filepath.Join(b.dir, "share", kwokStages, "*", "*.yaml"))
}

// CRDs returns the paths of the manifests of an operator's CRDs.
func (b Built) CRDs(operator, version string) ([]string, error) {
	return manifests(filepath.Join(b.dir, "share", "crds", operator, version, "*.yaml"))
}

// Deployment returns the paths of the manifests with which users deploy an operator.
func (b Built) Deployment(operator, version string) ([]string, error) {
	return manifests(filepath.Join(b.dir, "share", "deployments", operator, version, "*.yaml"))
}

// Image describes the image of a program. A caller writes its archive once.
type Image struct {
	Name             string // name as in the operator's chart, without the registry
	Program, Archive string // paths
}

// Images returns the images of an operator's programs. Their archives are in the cache entry of the programs.
func (b Built) Images(operator string) ([]Image, error) {
	c, version, err := b.operator(operator)
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, program := range c.programs {
		name := strings.ReplaceAll(fill(version).Replace(c.image), "{program}", program)
		images = append(images, Image{Name: name, Program: filepath.Join(b.Bin(), program), Archive: filepath.Join(b.dir, program+".tar")})
	}
	return images, nil
}

// Chart returns the folder with the chart that an operator's module contains.
func (b Built) Chart(operator string) string {
	return filepath.Join(b.dir, "share", "charts", operator)
}

// Version returns the version of an operator's module.
func (b Built) Version(operator string) (string, error) {
	_, version, err := b.operator(operator)
	return version, err
}

// operator returns the component of an operator, and the version of its module.
func (b Built) operator(name string) (component, string, error) {
	i := slices.IndexFunc(components, func(c component) bool { return c.name == name })
	if i < 0 {
		return component{}, "", fmt.Errorf("no component is called %q", name)
	}
	c := components[i]
	info, err := buildinfo.ReadFile(filepath.Join(b.Bin(), c.programs[0]))
	if err != nil {
		return component{}, "", fmt.Errorf("reading the version of %s: %w", name, err)
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == c.module {
			return c, module.Version, nil
		}
	}
	return component{}, "", fmt.Errorf("no program of %s names its version", name)
}

func manifests(glob string) ([]string, error) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no manifest matches %s", glob)
	}
	return files, nil
}

// key hashes the folders of components, so that any change gives another cache entry.
func key(source string, components []component) (string, error) {
	hash := sha256.New()
	for _, c := range components {
		k, err := c.key(source)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, c.name, c.programs, k)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// key hashes the component's folder and how it is built.
func (c component) key(source string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, c.pkg, c.stamps, c.share)
	for _, more := range []string{c.tags, c.image} {
		if more != "" {
			fmt.Fprintln(hash, more)
		}
	}
	dir := filepath.Join(source, c.name)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %x\n", entry.Name(), sha256.Sum256(data))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hashing the source of component %q: %w", c.name, err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}
