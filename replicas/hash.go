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

// TermsHash returns a short hash of one replica's requests and of the policy's settings for capacity. It hashes their
// JSON, so that an unset field of a later version does not change it.
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
