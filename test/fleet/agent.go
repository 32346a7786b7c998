package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// AgentProcess is one running process of hanse-member.
type AgentProcess struct {
	LogFile string

	cmd *exec.Cmd
}

// WithAgent returns an option that lets the member chart install an agent. tunnel has the values that hansectl join
// prints.
func WithAgent(tunnel map[string]any) func(values map[string]any) {
	return func(values map[string]any) { values["tunnel"] = tunnel }
}

// StartAgent runs hanse-member for a cluster as the Deployment of the member chart does: with its flags, its Secrets
// and a token of its ServiceAccount. The caller must stop the process.
func (f *Fleet) StartAgent(ctx context.Context, c *Cluster) (*AgentProcess, error) {
	var agent appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-agent"}, &agent); err != nil {
		return nil, fmt.Errorf("reading the Deployment of the agent: %w", err)
	}
	pod := agent.Spec.Template.Spec
	token, err := c.Token(ctx, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.KubeconfigFor(token, false)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(f.Dir, c.Name+"-agent.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"--kubeconfig", path}, pod.Containers[0].Args...)
	args = append(args, "--health-probe-bind-address=0") // the port of the chart may be in use on this machine
	for _, mount := range pod.Containers[0].VolumeMounts {
		folder, err := f.mountSecret(ctx, c, &pod, mount.Name)
		if err != nil {
			return nil, err
		}
		for i := range args {
			args[i] = strings.Replace(args[i], "="+mount.MountPath+"/", "="+folder+"/", 1)
		}
	}
	return f.runAgent(c.Name, args)
}

// mountSecret writes the Secret of a volume to a folder, as a kubelet does.
func (f *Fleet) mountSecret(ctx context.Context, c *Cluster, pod *corev1.PodSpec, volume string) (string, error) {
	folder := filepath.Join(f.Dir, c.Name+"-"+volume)
	for _, v := range pod.Volumes {
		if v.Name != volume || v.Secret == nil {
			continue
		}
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: v.Secret.SecretName}, &secret); err != nil {
			return "", fmt.Errorf("reading the Secret of the volume %s: %w", volume, err)
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
		for key, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(folder, key), data, 0o600); err != nil {
				return "", err
			}
		}
	}
	return folder, nil
}

func (f *Fleet) runAgent(name string, args []string) (*AgentProcess, error) {
	log, err := os.OpenFile(filepath.Join(f.Dir, name+"-agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	a := &AgentProcess{LogFile: log.Name(), cmd: exec.Command(filepath.Join(f.Bin, "hanse-member"), args...)}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting hanse-member: %w", err)
	}
	return a, nil
}

// Kill kills the process and waits until it has ended.
func (a *AgentProcess) Kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// Log returns what the process has logged.
func (a *AgentProcess) Log() string {
	raw, err := os.ReadFile(a.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
