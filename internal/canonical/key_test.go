package canonical_test

import (
	"bytes"
	"testing"

	"github.com/hanse-dev/hanse/internal/canonical"
)

func TestOnlyHoldersOfTheKeyCanComputeASum(t *testing.T) {
	hash := []byte("hash")
	one := canonical.Key("one").Sum(hash)
	if !bytes.Equal(one, canonical.Key("one").Sum(hash)) {
		t.Error("one key gives two sums")
	}
	if bytes.Equal(one, canonical.Key("other").Sum(hash)) || bytes.Equal(one, hash) {
		t.Error("another key gives the same sum, or none does")
	}
}
