package supervise

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/hanse-dev/hanse/lab/kube"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

const (
	tokenValidity = 24 * time.Hour
	healthTimeout = time.Second
)

// deployedOperator runs the process of an operator while the cluster has a pod of its Deployment. It does the work of a
// kubelet: the process has the arguments and the ServiceAccount of the pod, and the pod is Ready while the process
// responds.
//
// All pods with an equal spec share one process. If their specs differ, the process belongs to the newest pod.
type deployedOperator struct {
	*plane.DeployedOperator
	client *kube.Client
	health http.Client

	pods   []kube.Pod // the pods at the last check, newest first
	leader kube.Pod   // the pod whose process runs
	issued time.Time  // when the token of the leader was issued
}

func newDeployedOperator(prepared *plane.DeployedOperator, client *kube.Client) *deployedOperator {
	return &deployedOperator{DeployedOperator: prepared, client: client, health: http.Client{Timeout: healthTimeout}}
}

func (d *deployedOperator) command(ctx context.Context) (*process.Spec, string, error) {
	all, err := d.client.Pods(ctx)
	if err != nil {
		return nil, "", err
	}
	if d.pods = startedPods(all, d.Runs); len(d.pods) == 0 {
		d.leader = kube.Pod{}
		return nil, "for a pod of its Deployment", nil
	}
	leader := electLeader(d.pods, d.leader)
	if leader.Metadata.UID != d.leader.Metadata.UID || time.Since(d.issued) > tokenValidity/2 {
		if err := d.identify(ctx, leader); err != nil {
			return nil, "", err
		}
	}
	d.leader = leader
	spec := d.Spec(leader)
	return &spec, "", nil
}

// startedPods returns the pods of the operator that kwok has started, newest first.
func startedPods(all []kube.Pod, ofOperator func(kube.Pod) bool) []kube.Pod {
	var started []kube.Pod
	for _, pod := range all {
		if ofOperator(pod) && pod.Status.Phase == "Running" && pod.Metadata.DeletionTimestamp == nil {
			started = append(started, pod)
		}
	}
	slices.SortFunc(started, func(a, b kube.Pod) int {
		return cmp.Or(b.Metadata.CreationTimestamp.Compare(a.Metadata.CreationTimestamp), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return started
}

// electLeader returns the last leader if it still exists and has the same spec as the newest pod. Otherwise it returns
// the newest pod.
func electLeader(pods []kube.Pod, last kube.Pod) kube.Pod {
	for _, pod := range pods {
		if pod.Metadata.UID == last.Metadata.UID && sameProcess(pod, pods[0]) {
			return pod
		}
	}
	return pods[0]
}

// sameProcess returns true if both pods can share one process.
func sameProcess(a, b kube.Pod) bool {
	return a.Metadata.Namespace == b.Metadata.Namespace && reflect.DeepEqual(a.Spec, b.Spec)
}

// identify writes a token of the pod's ServiceAccount for the pod's process.
func (d *deployedOperator) identify(ctx context.Context, pod kube.Pod) error {
	token, err := d.client.Token(ctx, pod.Metadata.Namespace, pod.Spec.ServiceAccountName, tokenValidity)
	if err != nil {
		return err
	}
	d.issued = time.Now()
	return d.WriteIdentity(pod, token)
}

// report makes the pods Ready while their process responds, and not Ready otherwise. After a failure, the next check
// tries again.
func (d *deployedOperator) report(ctx context.Context, p *process.Process) {
	healthy := p != nil && d.healthy(ctx)
	for _, pod := range d.pods {
		ready := healthy && sameProcess(pod, d.leader)
		if pod.Ready() != ready {
			_ = d.client.SetReady(ctx, pod, ready) // the pod may be gone
		}
	}
}

func (d *deployedOperator) healthy(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.HealthURL, nil)
	if err != nil {
		return false
	}
	response, err := d.health.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
