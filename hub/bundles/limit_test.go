package bundles

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestANamespaceStoresOnlySoManyObjects(t *testing.T) {
	t.Parallel()
	of := func(name string) hubv1.BundleReference {
		return hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: name}
	}
	other := hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "bank", Name: "a"}
	const limit = 10
	tests := map[string]struct {
		stored, reserved map[hubv1.BundleReference]int
		added            int
		refused          string // part of the message
	}{
		"a Bundle up to the limit":                        {stored: map[hubv1.BundleReference]int{of("b"): 4, of("a"): 2}, added: 4},
		"a Bundle beyond the limit":                       {stored: map[hubv1.BundleReference]int{of("b"): 4, of("a"): 2}, added: 5, refused: "namespace shop have 6 stored objects, this Bundle adds 5, and the limit of a namespace is 10"},
		"a Bundle that adds no object":                    {stored: map[hubv1.BundleReference]int{of("b"): 40, of("a"): 2}},
		"a Bundle beside one that is being stored":        {reserved: map[hubv1.BundleReference]int{of("b"): 7}, added: 4, refused: "have 7 stored objects"},
		"a Bundle beside one that is stored in part":      {stored: map[hubv1.BundleReference]int{of("b"): 3}, reserved: map[hubv1.BundleReference]int{of("b"): 7}, added: 3},
		"a Bundle that was stored in part":                {stored: map[hubv1.BundleReference]int{of("a"): 3}, reserved: map[hubv1.BundleReference]int{of("a"): 10}, added: 7},
		"a Bundle beside a full namespace of other users": {reserved: map[hubv1.BundleReference]int{other: 10}, added: 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reservations{of: tc.reserved}
			err := r.take(of("a"), tc.added, limit, func() map[hubv1.BundleReference]int {
				if tc.stored == nil {
					return map[hubv1.BundleReference]int{}
				}
				return maps.Clone(tc.stored)
			})
			refused := (*refusal)(nil)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (!errors.As(err, &refused) || refused.reason != hubv1.ReasonManifestLimit || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}

func TestBundlesThatAreStoredAtTheSameTimeKeepTheLimitTogether(t *testing.T) {
	t.Parallel()
	var r reservations
	var all sync.WaitGroup
	accepted := make(chan string, 20)
	for i := range 20 {
		name := string(rune('a' + i))
		all.Go(func() {
			nothing := func() map[hubv1.BundleReference]int { return map[hubv1.BundleReference]int{} }
			if r.take(hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: name}, 3, 10, nothing) == nil {
				accepted <- name
			}
		})
	}
	all.Wait()
	if n := len(accepted); n != 3 {
		t.Errorf("%d Bundles of 3 objects are stored, and the limit is 10", n)
	}
	r.free(hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: <-accepted})
	if len(r.of) != 2 {
		t.Errorf("after a deletion, the reservations are %v", r.of)
	}
}
