package bundles

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
)

// chartOf returns the chart that a repository names. The error is a *refusal.
func chartOf(r *hubv1.ChartRepository) (fetch.Chart, error) {
	ca, err := base64.StdEncoding.DecodeString(r.CABundle)
	if err != nil {
		return fetch.Chart{}, notFetched(fmt.Errorf("chart.repository.caBundle is not PEM encoded in base64: %w", err))
	}
	return fetch.Chart{URL: r.URL, Name: r.Name, Version: r.Version, CA: string(ca)}, nil
}

// fetched returns the archive of the chart in an operator's repository. It returns nil if the operator has no
// repository. While the first attempt to fetch the archive runs, the error is charts.ErrFetching. Another error may be
// a *refusal, which has the reason for the condition Stored.
func (c *Controller) fetched(ctx context.Context, o *hubv1.FederatedOperator) ([]byte, error) {
	r := o.Spec.Chart.Repository
	if r == nil {
		c.opts.Charts.Forget(o.Name)
		return nil, nil
	}
	wanted, err := chartOf(r)
	if err != nil {
		return nil, err
	}
	wanted.Digest = o.Spec.Chart.Digest
	if archive, ok := c.opts.Charts.Kept(o.Name, wanted); ok {
		return archive, nil
	}
	// A new leader fetches the archive from which the objects were stored. It does so by the digest, because the tag may
	// now point to another archive.
	if was := o.Status.Chart; was != nil && was.Repository == repositoryOf(r) && (wanted.Digest == "" || wanted.Digest == was.Digest) {
		wanted.Known = was.Digest
	}
	if wanted.Credentials, err = c.opts.credentials(ctx, r.Secret); err != nil {
		return nil, err
	}
	of := hubv1.ReferenceTo(o)
	archive, err := c.opts.Charts.Get(c.leading(), o.Name, wanted, func() { c.wake(of) })
	switch {
	case err == nil, errors.Is(err, fetch.ErrFetching):
		return archive, err
	case errors.Is(err, fetch.ErrNotAllowed):
		return nil, &refusal{hubv1.ReasonRepositoryNotAllowed, err.Error() + ": add it there, or choose another repository; the stored objects stay"}
	case errors.Is(err, fetch.ErrDigest):
		return nil, invalidChart(err)
	}
	return nil, notFetched(err)
}

// credentials returns the Docker configuration in the Secret with this name. The configuration is empty if name is
// empty. The Secret must have the type kubernetes.io/dockerconfigjson, because such a Secret names the hosts that may
// get the passwords. The error may be a *refusal.
func (o Options) credentials(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: name}
	var secret corev1.Secret
	switch err := o.APIReader.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
		return "", notFetched(fmt.Errorf("chart.repository.secret names Secret %s, which does not exist: create the Secret, or correct its name", key))
	case err != nil:
		return "", fmt.Errorf("reading Secret %s: %w", key, err)
	case secret.Type != corev1.SecretTypeDockerConfigJson:
		return "", notFetched(fmt.Errorf("chart.repository.secret names Secret %s, which does not have the type %s: create the Secret again with this type", key, corev1.SecretTypeDockerConfigJson))
	}
	return string(secret.Data[corev1.DockerConfigJsonKey]), nil
}

// leading returns a context that ends when this replica stops leading.
func (c *Controller) leading() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

func notFetched(err error) error {
	return &refusal{hubv1.ReasonChartNotFetched, err.Error() + "; the stored objects stay, and the hub tries again"}
}

// repositoryOf returns the location of a chart, for the status.
func repositoryOf(r *hubv1.ChartRepository) string { return r.URL + "/" + r.Name + ":" + r.Version }
