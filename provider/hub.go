package provider

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hub reads MemberClusters and the consumer's Secrets from a cache, and writes renewed tokens.
type hub struct {
	namespace string
	cache     cache.Cache
	reader    client.Reader // the cache
	client    client.Client
}

func newHub(config *rest.Config, namespace string) (*hub, error) {
	scheme, err := hubScheme()
	if err != nil {
		return nil, err
	}
	// The provider needs no discovery of the hub, since it knows both kinds.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(hubv1.GroupVersion.WithKind("MemberCluster"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	cached, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, ByObject: map[client.Object]cache.ByObject{
		&hubv1.MemberCluster{}: {},
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{namespace: {}}, Field: fields.OneTermEqualSelector("type", string(SecretType)),
		},
	}})
	if err != nil {
		return nil, fmt.Errorf("making a cache of the hub: %w", err)
	}
	return &hub{namespace: namespace, cache: cached, reader: cached, client: live}, nil
}

// mayRead returns an error that names the right that the consumer lacks on the hub. An informer would try for ever.
func (h *hub) mayRead(ctx context.Context) error {
	for _, of := range []struct {
		list  client.ObjectList
		where []client.ListOption
		name  string
	}{
		{&hubv1.MemberClusterList{}, nil, "memberclusters.hanse.dev"},
		{&corev1.SecretList{}, []client.ListOption{client.InNamespace(h.namespace), client.MatchingFields{"type": string(SecretType)}}, "secrets in namespace " + h.namespace},
	} {
		err := h.client.List(ctx, of.list, append(of.where, client.Limit(1))...)
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("the provider may not list %s on the hub: grant get, list and watch: %w", of.name, err)
		}
		if err != nil {
			return fmt.Errorf("listing %s on the hub: %w", of.name, err)
		}
	}
	return nil
}

// start begins the cache, waits for its first lists, and passes on the name of each MemberCluster that may have
// changed.
func (h *hub) start(ctx context.Context, changed func(name string)) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(nameOf(obj)) },
		UpdateFunc: func(_, obj any) { changed(nameOf(obj)) },
		DeleteFunc: func(obj any) { changed(nameOf(obj)) },
	}
	for _, obj := range []client.Object{&hubv1.MemberCluster{}, &corev1.Secret{}} {
		informer, err := h.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", obj, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching %T on the hub: %w", obj, err)
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- h.cache.Start(ctx) }()
	if !h.cache.WaitForCacheSync(ctx) {
		return errors.Join(ctx.Err(), <-failed)
	}
	return nil
}

func nameOf(obj any) string {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if o, ok := obj.(client.Object); ok {
		return o.GetName()
	}
	return ""
}

// read returns the MemberCluster and the Secret of a name. An absent object is nil.
func (h *hub) read(ctx context.Context, name string) (*hubv1.MemberCluster, *corev1.Secret, error) {
	cluster, secret := &hubv1.MemberCluster{}, &corev1.Secret{}
	err := h.reader.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		cluster, err = nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading MemberCluster %s: %w", name, err)
	}
	err = h.reader.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		secret, err = nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading Secret %s/%s: %w", h.namespace, name, err)
	}
	return cluster, secret, nil
}

// storeToken replaces the token in a Secret that still has the token before.
func (h *hub) storeToken(ctx context.Context, name, before, token string) error {
	secret := &corev1.Secret{}
	if err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, secret); err != nil {
		return fmt.Errorf("reading Secret %s/%s: %w", h.namespace, name, err)
	}
	if string(secret.Data[TokenKey]) != before {
		return nil // a newer token is there already
	}
	after := secret.DeepCopy()
	after.Data[TokenKey] = []byte(token)
	if err := h.client.Patch(ctx, after, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the new token into Secret %s/%s: %w", h.namespace, name, err)
	}
	return nil
}
