package kube

import (
	"context"
	"net/http"
	"time"
)

// Pod has the fields of a pod that the lab uses.
type Pod struct {
	Metadata struct {
		Namespace, Name, UID string
		CreationTimestamp    time.Time
		DeletionTimestamp    *time.Time
	}
	Spec   PodSpec
	Status struct {
		Phase      string
		Conditions []struct{ Type, Status string }
	}
}

// PodSpec has the fields of a pod's spec that the lab uses.
type PodSpec struct {
	ServiceAccountName string
	Containers         []Container
}

// Container has the fields of a container that the lab uses.
type Container struct {
	Name, Image string
	Args        []string
	Env         []struct{ Name, Value string }
}

// Ready returns true if the pod's condition Ready is true.
func (p Pod) Ready() bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// Pods returns the pods of all namespaces from the API server's cache.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	var list struct{ Items []Pod }
	err := c.do(ctx, http.MethodGet, "/api/v1/pods?resourceVersion=0", nil, &list)
	return list.Items, err
}

// SetReady sets the conditions Ready and ContainersReady of a pod and the state of its containers, as a kubelet does.
func (c *Client) SetReady(ctx context.Context, pod Pod, ready bool) error {
	now := time.Now().UTC().Format(time.RFC3339)
	status, state := "True", object{"running": object{"startedAt": now}}
	condition := object{"lastTransitionTime": now, "reason": nil, "message": nil}
	if !ready {
		status, state = "False", object{"waiting": object{"reason": "CrashLoopBackOff", "message": "the process of the container does not run"}}
		condition["reason"], condition["message"] = "ContainersNotReady", "the process of a container does not run"
	}
	var conditions, containers []object
	for _, conditionType := range []string{"Ready", "ContainersReady"} {
		typed := object{"type": conditionType, "status": status}
		for key, value := range condition {
			typed[key] = value
		}
		conditions = append(conditions, typed)
	}
	for _, container := range pod.Spec.Containers {
		containers = append(containers, object{
			"name": container.Name, "image": container.Image, "imageID": "", "restartCount": 0, "ready": ready, "started": ready, "state": state,
		})
	}
	path := "/api/v1/namespaces/" + pod.Metadata.Namespace + "/pods/" + pod.Metadata.Name + "/status"
	patch := object{"metadata": object{"uid": pod.Metadata.UID}, "status": object{"conditions": conditions, "containerStatuses": containers}}
	return c.do(ctx, http.MethodPatch, path, patch, nil)
}

// Token returns a token of a ServiceAccount that is valid for the given time.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, validity time.Duration) (string, error) {
	request := object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"expirationSeconds": int(validity.Seconds())},
	}
	var answer struct{ Status struct{ Token string } }
	path := "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + serviceAccount + "/token"
	err := c.do(ctx, http.MethodPost, path, request, &answer)
	return answer.Status.Token, err
}
