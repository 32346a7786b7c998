package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Key is the secret of a hub for hashes of its objects. Without the key, a user who can read a hash cannot guess the
// content.
type Key []byte

// Sum returns the HMAC-SHA256 of a hash. An empty Key, which only tests use, returns the hash itself.
func (k Key) Sum(hash []byte) []byte {
	if len(k) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(hash)
	return mac.Sum(nil)
}
