package console

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestAUserHasAShortName(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"system:serviceaccount:shop:viewer": "shop/viewer", "alice@example.com": "alice@example.com", "": "", "oidc:system:serviceaccount:a:b": "oidc:system:serviceaccount:a:b",
	} {
		if got := shortUser(user); got != want {
			t.Errorf("%q is %q, want %q", user, got, want)
		}
	}
}

func TestTheChosenNamespaceIsAmongTheNamespaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespaces []string
		chosen     string
		want       []string
	}{
		"none is known":      {nil, "shop", nil},
		"none is chosen":     {[]string{"a"}, "", []string{"a"}},
		"it is one of them":  {[]string{"a", "b"}, "b", []string{"a", "b"}},
		"it is another":      {[]string{"a", "c"}, "b", []string{"a", "b", "c"}},
		"it sorts as a last": {[]string{"a"}, "z", []string{"a", "z"}},
	} {
		if got := withChosen(tc.namespaces, tc.chosen); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestNamespacesAreRememberedForAMinuteAndForFewUsers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var l listings
	l.set("one", []string{"shop"}, now)
	if got, known := l.get("one", now.Add(namespacesLast-time.Second)); !known || !slices.Equal(got, []string{"shop"}) {
		t.Errorf("the namespaces are %v, known: %t", got, known)
	}
	if _, known := l.get("one", now.Add(namespacesLast)); known {
		t.Error("old namespaces are remembered")
	}
	if _, known := l.get("two", now); known {
		t.Error("another token gets the namespaces")
	}
	for i := range 3 * maxListings {
		l.set(fmt.Sprint(i), nil, now)
	}
	if len(l.of) > maxListings {
		t.Errorf("the namespaces of %d users are remembered", len(l.of))
	}
}
