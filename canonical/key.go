package canonical

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Key prevents guessing a text from its hash without the key.
type Key []byte

// Sum returns the HMAC-SHA256 of a hash. Without a key, only for tests, it returns the hash itself.
func (k Key) Sum(hash []byte) []byte {
	if len(k) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(hash)
	return mac.Sum(nil)
}
