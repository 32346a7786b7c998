package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Key is a secret of the hub that goes into the hashes of its objects. Without a key, a user who can read a hash could
// guess a content, hash it, and compare the hashes.
type Key []byte

// Sum returns the HMAC-SHA256 of a hash with this key. If the key is empty, as in some tests, Sum returns the hash
// itself.
func (k Key) Sum(hash []byte) []byte {
	if len(k) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(hash)
	return mac.Sum(nil)
}
