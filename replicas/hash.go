package replicas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// termsHashLength in hexadecimal digits.
const termsHashLength = 16

// TermsHash is short and differs if the way to divide by room, or what one replica asks for, does. It comes from their
// JSON, in which a field that a later version adds, and nobody sets, is not seen.
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
