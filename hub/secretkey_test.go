package hub

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/test/apiserver"
)

func TestAllReplicasHaveOneKeyForTheDigestsOfSecrets(t *testing.T) {
	apiserver.Needed(t)
	hub, err := kubernetes.NewForConfig(serve(t, &envtest.Environment{}))
	must(t, err)
	ctx := t.Context()

	keys := make([]canonical.Key, 8) // keys of replicas that start at the same moment
	var replicas sync.WaitGroup
	for i := range keys {
		replicas.Go(func() {
			var err error
			if keys[i], err = readSecretKey(ctx, hub, metav1.NamespaceDefault); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	for i, key := range keys {
		if len(key) != secretKeyBytes || !bytes.Equal(key, keys[0]) {
			t.Errorf("replica %d has another key than the first", i)
		}
	}

	secrets := hub.CoreV1().Secrets(metav1.NamespaceDefault)
	_, err = secrets.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Immutable: new(bool), Data: map[string][]byte{secretKey: make([]byte, secretKeyBytes)}}, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("%v: the key can be changed while replicas use it", err)
	}

	must(t, secrets.Delete(ctx, secretName, metav1.DeleteOptions{}))
	after, err := readSecretKey(ctx, hub, metav1.NamespaceDefault)
	if err != nil || bytes.Equal(after, keys[0]) {
		t.Errorf("%v: a key that was lost is not made anew", err)
	}

	must(t, secrets.Delete(ctx, secretName, metav1.DeleteOptions{}))
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Data: map[string][]byte{secretKey: []byte("short")}}, metav1.CreateOptions{})
	must(t, err)
	if _, err := readSecretKey(ctx, hub, metav1.NamespaceDefault); err == nil || !strings.Contains(err.Error(), "delete the Secret and restart the hub") {
		t.Errorf("%v: a key that cannot be one is used", err)
	}
}

func TestAKeyThatAUserDeletesIsTheSameAgain(t *testing.T) {
	apiserver.Needed(t)
	config := serve(t, &envtest.Environment{})
	hub, err := kubernetes.NewForConfig(config)
	must(t, err)
	c, err := client.New(config, client.Options{})
	must(t, err)
	ctx, secrets := t.Context(), hub.CoreV1().Secrets(metav1.NamespaceDefault)
	key, err := readSecretKey(ctx, hub, metav1.NamespaceDefault)
	must(t, err)
	self := identity{Key: key}
	must(t, self.keepKey(ctx, c, metav1.NamespaceDefault))

	must(t, secrets.Delete(ctx, secretName, metav1.DeleteOptions{}))
	must(t, self.keepKey(ctx, c, metav1.NamespaceDefault))
	must(t, self.keepKey(ctx, c, metav1.NamespaceDefault))
	again, err := readSecretKey(ctx, hub, metav1.NamespaceDefault)
	if err != nil || !bytes.Equal(again, key) {
		t.Errorf("%v: the next process has another key", err)
	}
	if err := (identity{Key: make(canonical.Key, secretKeyBytes)}).keepKey(ctx, c, metav1.NamespaceDefault); !errors.Is(err, errOtherKey) {
		t.Errorf("%v: a process with another key does not say so", err)
	}
}
