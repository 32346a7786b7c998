package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

func TestEqualListsOfObjectsHaveOneDigest(t *testing.T) {
	t.Parallel()
	key := canonical.Key("key")
	list := SetList{
		{Kind: "ConfigMap", Namespace: "shop", Name: "a"}: "1", {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "a"}: "2",
	}
	packed, err := list.Pack(key)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadSetList(packed.Content)
	if diff := cmp.Diff(list, read); err != nil || diff != "" {
		t.Errorf("%v, the list that was read (-want +got):\n%s", err, diff)
	}
	again, _ := read.Pack(key)
	if again.Digest != packed.Digest {
		t.Errorf("the digest is %s, want %s", again.Digest, packed.Digest)
	}
	delete(read, hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "a"})
	if other, _ := read.Pack(key); other.Digest == packed.Digest {
		t.Error("a list without an object has the same digest")
	}
}

func TestAPartHasTheContentOfItsObject(t *testing.T) {
	t.Parallel()
	o := template("a")
	packed, err := PackPart(canonical.Key("key"), o)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadTemplate(packed.Content)
	if diff := cmp.Diff(o, read); err != nil || diff != "" {
		t.Errorf("%v, the part that was read (-want +got):\n%s", err, diff)
	}
}
