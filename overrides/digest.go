package overrides

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Digest names the content of a manifest: half of the SHA-256, in hex, of its JSON with sorted keys and of the salt. The
// salt is what changes how the manifest is applied, so that a change of it is applied too; for a Secret it must hold a
// key, because the values of a Secret may be few enough to be guessed from a digest.
func Digest(manifest *unstructured.Unstructured, salt ...string) string {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(manifest.Object); err != nil {
		// Render returns nothing that JSON cannot hold. Anything else gets a digest that no manifest has.
		h.Write([]byte(err.Error()))
	}
	for _, s := range salt {
		h.Write(strconv.AppendQuote(nil, s)) // quoted: ("a", "b") is not ("ab")
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
