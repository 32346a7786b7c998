package replicas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// termsHashLength is the length of the hash in hexadecimal digits.
const termsHashLength = 16

// TermsHash returns a short hash of the policy's settings and of the requests of one replica. A decision compares it
// with the hash in the binding. If both are equal, only capacities can have changed since the last division. The hash
// is computed from JSON. A field that a later version of the API adds does not change the hash while the field is not
// set.
func TermsHash(way hubv1.DividePolicy, requests corev1.ResourceList) (string, error) {
	raw, err := json.Marshal(struct {
		Way      hubv1.DividePolicy  `json:"way"`
		Requests corev1.ResourceList `json:"requests"`
	}{way, requests})
	if err != nil {
		return "", fmt.Errorf("hashing the terms of a division: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:termsHashLength], nil
}
