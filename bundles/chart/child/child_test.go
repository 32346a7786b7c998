package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/chart/charttest"
)

// input returns a chart with one template and a definition.
func input(template string) Input {
	return Input{Release: "web", Namespace: "shop", Archive: charttest.Archive("app", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.2.3\nappVersion: v9\n", "templates/a.yaml": template,
		"values.yaml": "small: 1\nlarge: 12345678901\nhalf: 0.5\n", "crds/a.yaml": definition(1),
	})}
}

// definition returns a CustomResourceDefinition with a number of fields.
func definition(fields int) string {
	var out strings.Builder
	out.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, creationTimestamp: null}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
`)
	for i := range fields {
		fmt.Fprintf(&out, "          field%d: {type: string, description: 'What <this> field says, and when & why it is set.'}\n", i)
	}
	return out.String()
}

const (
	head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  value: "
	good = head + `{{ .Values.text | quote }}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, creationTimestamp: null}
spec: {whole: 1.0, small: {{ .Values.small }}, large: {{ .Values.large }}, half: {{ .Values.half }}, huge: 1e300, long: 9007199254740993, nothing: null, none: [], empty: {}, mark: "<&>\u2028"}
---
apiVersion: v1
kind: Pod
metadata: {name: hook, annotations: {helm.sh/hook: "pre-install,test", helm.sh/hook-weight: "-3"}}
{{ with lookup "v1" "Secret" "a" "b" }}{{ end }}
`
	endless = `{{ range $i := until 100000 }}{{ range $j := until 100000 }}{{ range $k := until 100000 }}{{ end }}{{ end }}{{ end }}`
)

func TestRender(t *testing.T) {
	in := input(good)
	in.Values = []map[string]any{{"text": "first"}, {"text": "second", "small": nil}, {"small": 7.0, "large": 1e21}}
	want, err := chart.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a child renders another result (-want +got):\n%s", diff)
	}
	if len(got.Objects) != 2 || len(got.Definitions) != 1 || len(got.Hooks) != 1 || len(got.Lookups) != 1 {
		t.Errorf("the chart has 2 objects, 1 definition, 1 hook and 1 lookup: got %+v", got)
	}
}

func TestRenderAcceptsChartsAtTheLimits(t *testing.T) {
	large := ""
	for i := range 3 {
		large += "---\n" + strings.ReplaceAll(definition(4000), "widgets", fmt.Sprintf("widgets%d", i))
	}
	for name, template := range map[string]string{
		"templates that include each other as deep as helm allows": `{{ define "again" }}{{ if lt . 999 }}{{ include "again" (add1 .) }}{{ end }}{{ end }}` + head + `{{ include "again" 0 | quote }}`,
		"definitions of 1 MB": large,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(t.Context(), input(template)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	changed := func(template string, change func(*Input)) Input {
		in := input(template)
		change(&in)
		return in
	}
	refuses(t, map[string]refusal{
		"random values, as chart does":                        {input(head + `{{ randAlphaNum 9 }}`), chart.ErrNonDeterministic, "ConfigMap a, field .data.value"},
		"an archive with another digest, as chart does":       {changed(good, func(in *Input) { in.Digest = "sha256:00" }), nil, "not sha256:00"},
		"a template that fails":                               {input(`{{ fail "no" }}`), nil, "no"},
		"a template that reads the environment":               {input(head + `{{ env "PATH" }}`), nil, `function "env" not defined`},
		"a template that prints what a stack overflow prints": {input(`{{ fail "stack overflow, out of memory" }}`), nil, "stack overflow, out of memory"},
	})
}

// refusal is an input that Render refuses with an error. The error has this text, and is wants if wants is not nil.
type refusal struct {
	in    Input
	wants error
	text  string
}

// refuses checks that Render refuses each input, and renders another chart afterwards.
func refuses(t *testing.T, tests map[string]refusal) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Render(t.Context(), c.in)
			if err == nil || !strings.Contains(err.Error(), c.text) || c.wants != nil && !errors.Is(err, c.wants) {
				t.Errorf("want an error with %q that is %v, got %v", c.text, c.wants, err)
			}
			for _, other := range []error{ErrMemory, ErrStack, ErrSize, ErrProcess} {
				if !errors.Is(c.wants, other) && errors.Is(err, other) {
					t.Errorf("the error is also %v: %v", other, err)
				}
			}
			if _, err := Render(t.Context(), input(good)); err != nil {
				t.Errorf("rendering another chart: %v", err)
			}
		})
	}
}

func TestRenderHasTheTextsOfChart(t *testing.T) {
	for _, template := range []string{head + `{{ randAlphaNum 9 }}`, `{{ fail "no" }}`, "kind: ["} {
		_, want := chart.Render(t.Context(), input(template))
		if _, got := Render(t.Context(), input(template)); want == nil || got == nil || got.Error() != want.Error() {
			t.Errorf("%s: want %v, got %v", template, want, got)
		}
	}
}

func TestATemplateReadsNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Render(t.Context(), input(head+`{{ .Files.Get "`+file+`" | quote }}`))
	if err != nil {
		t.Fatal(err)
	}
	if value := got.Objects[0].Object["data"].(map[string]any)["value"]; value != "" {
		t.Errorf("the template reads %q", value)
	}
}

func TestAnEndlessTemplateEndsWithItsProcess(t *testing.T) {
	if _, err := Render(t.Context(), input(endless)); !errors.Is(err, ErrCPU) {
		t.Errorf("want %v, got %v", ErrCPU, err)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are still there", left)
	}
}

func TestAChildIsConfined(t *testing.T) {
	pid, cancel, done := started(t)
	defer func() { cancel(); <-done }()
	proc := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := proc("environ"); got != "GOMAXPROCS=1\x00GOTRACEBACK=none\x00" {
		t.Errorf("the environment is %q", got)
	}
	waitFor(t, "limits of the child", func() bool {
		return strings.Contains(proc("limits"), "Max core file size        0                    0 ")
	})
	if got := proc("oom_score_adj"); got != "1000\n" {
		t.Errorf("oom_score_adj is %q, want the highest value, so that the kernel ends the child before the hub", got)
	}
	limits := proc("limits")
	seconds := int(MaxCPU.Seconds())
	for _, want := range []string{fmt.Sprintf("Max cpu time              %-21d%-21dseconds", seconds, seconds+10), "Max file size             0                    0 ", "Max open files            0                    0 "} {
		if !strings.Contains(limits, want) {
			t.Errorf("no line %q in:\n%s", want, limits)
		}
	}
	if strings.Contains(limits, "Max data size             unlimited") {
		t.Errorf("the memory has no limit:\n%s", limits)
	}
	for fd := range 3 {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err != nil || !strings.HasPrefix(target, "pipe:") {
			t.Errorf("descriptor %d is %s: %v", fd, target, err)
		}
	}
}

func TestACancelledRenderingEndsWithItsProcess(t *testing.T) {
	pid, cancel, done := started(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrProcess) {
		t.Errorf("want %v, got %v", context.Canceled, err)
	}
	if !gone(pid) {
		t.Errorf("process %d is still there", pid)
	}
}

func TestOneChildRunsAtATime(t *testing.T) {
	first, cancel, done := started(t)
	ctx, stop := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() {
		_, err := Render(ctx, input(good))
		waits <- err
	}()
	stop()
	if err := <-waits; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for the rendering of another chart") {
		t.Errorf("a second rendering whose context ends: %v", err)
	}
	go func() {
		_, err := Render(t.Context(), input(good))
		waits <- err
	}()
	if got := childrenOf(t, os.Getpid()); !slices.Equal(got, []int{first}) {
		t.Errorf("want the process %d alone, got %v", first, got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the first rendering: %v", err)
	}
	if err := <-waits; err != nil {
		t.Errorf("the rendering behind it: %v", err)
	}
}

func TestAChildThatIsKilledIsNoErrorOfTheChart(t *testing.T) {
	pid, cancel, done := started(t)
	defer cancel()
	kill(t, pid)
	if err := <-done; !errors.Is(err, ErrProcess) || !strings.Contains(err.Error(), "too little memory") {
		t.Errorf("want %v, got %v", ErrProcess, err)
	}
}

func TestAChildEndsWithItsParent(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0], parentArgument)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := onlyChildOf(t, parent.Process.Pid)
	kill(t, parent.Process.Pid)
	if err := parent.Wait(); err == nil {
		t.Error("the parent ended by itself")
	}
	waitFor(t, "end of the child", func() bool { return gone(pid) })
}

// started renders an endless chart, and returns the process, a function that cancels the rendering, and its error.
func started(t *testing.T) (int, context.CancelFunc, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Render(ctx, input(endless))
		done <- err
	}()
	return onlyChildOf(t, os.Getpid()), cancel, done
}

// onlyChildOf waits until the process has a child that runs its executable.
func onlyChildOf(t *testing.T, parent int) int {
	t.Helper()
	var found []int
	waitFor(t, "child", func() bool {
		found = childrenOf(t, parent)
		return len(found) == 1 && strings.Contains(read(found[0], "cmdline"), Argument)
	})
	return found[0]
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("waiting for the %s: %v", what, err)
	}
}

func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && slices.Equal(state(pid)[1:], []string{strconv.Itoa(parent)}) {
			out = append(out, pid)
		}
	}
	return out
}

// gone reports whether the process has ended. Its parent may not have read its exit code yet.
func gone(pid int) bool { return state(pid)[0] == "" || state(pid)[0] == "Z" }

// state returns the state of a process and the process ID of its parent.
func state(pid int) []string {
	_, fields, found := strings.Cut(read(pid, "stat"), ") ")
	if !found {
		return []string{"", ""}
	}
	return strings.Fields(fields)[:2]
}

// read returns a file of a process in /proc. It is empty if the process has ended.
func read(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}
