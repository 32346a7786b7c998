package overrides

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
)

// Digest names the content of a manifest: half of the SHA-256, in hex, of its JSON with sorted keys and of the salt. The
// salt is what changes how the manifest is applied, so that a change of it is applied too. The digest of a Secret is keyed:
// its values may be few enough to be guessed from a digest.
func Digest(key canonical.Key, manifest *unstructured.Unstructured, salt ...string) string {
	h := sha256.New()
	h.Write(append(canonical.Bytes(manifest.Object), '\n')) // digests of before had the newline
	for _, s := range salt {
		h.Write(strconv.AppendQuote(nil, s)) // quoted: ("a", "b") is not ("ab")
	}
	sum := h.Sum(nil)
	if hubv1.IsSecret(manifest.GroupVersionKind().GroupKind()) {
		sum = key.Sum(sum)
	}
	return hex.EncodeToString(sum[:16])
}
