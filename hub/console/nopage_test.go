package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAPathWithoutAPageIsAnsweredWithThePageOfAnError(t *testing.T) {
	w := newWorld(t)
	r := w.signedIn(w.token(nil, reads())).get("/no-such-page")
	if r.StatusCode != http.StatusNotFound || !strings.Contains(r.text, "the hub has no page /no-such-page") || !strings.Contains(r.text, "<nav") {
		t.Errorf("a path without a page: %s: %s", r.Status, r.text)
	}
}

func TestTheAdviceNamesARoleThatGrantsTheMissingRight(t *testing.T) {
	t.Parallel()
	lacks := func(group, resource string) error {
		return fmt.Errorf("listing: %w", apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", errors.New("no")))
	}
	for name, tc := range map[string]struct {
		err       error
		namespace string
		want      string
	}{
		"bindings of a namespace": {lacks(hubv1.GroupVersion.Group, "resourcebindings"), "shop", "hanse-view in namespace shop"},
		"all bindings":            {lacks(hubv1.GroupVersion.Group, "resourcebindings"), "", "hanse-view in the namespace, or for the whole hub"},
		"another kind":            {lacks("apps", "deployments"), "shop", "an administrator"},
	} {
		if got := adviceOn(tc.err, tc.namespace); !strings.Contains(got, tc.want) {
			t.Errorf("%s: the advice is %q, want %q", name, got, tc.want)
		}
	}
}
