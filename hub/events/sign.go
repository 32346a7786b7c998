package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// These constants describe the format of signing keys, from the Standard Webhooks specification.
const (
	keyPrefix   = "whsec_"
	minKeyBytes = 24
	maxKeyBytes = 64
	maxKeys     = 2
)

// errKey is the error for an invalid signing key. It does not quote the key, because the Secret may have been made for
// another purpose.
var errKey = errors.New("must be one or two lines, each with whsec_ and 24 to 64 bytes in base64")

// parseKeys parses signing keys, one on each line.
func parseKeys(text []byte) ([][]byte, error) {
	if len(text) > maxKeys*2*maxKeyBytes {
		return nil, errKey
	}
	var keys [][]byte
	for _, line := range strings.Fields(string(text)) {
		encoded, ok := strings.CutPrefix(line, keyPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minKeyBytes || len(key) > maxKeyBytes {
			return nil, errKey
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, errKey
	}
	return keys, nil
}

// signature returns the value of the header webhook-signature, with one signature for each key.
func signature(keys [][]byte, id string, at time.Time, body []byte) string {
	signed := make([]string, 0, len(keys))
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp(at), body)
		signed = append(signed, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signed, " ")
}

// timestamp returns the value of the header webhook-timestamp.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
