package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Key makes the hash of a text that may be guessed useless to everybody who does not have the key.
type Key []byte

// Sum is the HMAC-SHA256 of a hash. Without a key, which is for tests, it is the hash itself.
func (k Key) Sum(hash []byte) []byte {
	if len(k) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(hash)
	return mac.Sum(nil)
}
