package events

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

// ofStandard is the key in the examples and tests of Standard Webhooks.
const ofStandard = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// The expected values are from the tests of the Standard Webhooks libraries.
func TestTheSignatureIsThatOfStandardWebhooks(t *testing.T) {
	keys, err := parseKeys([]byte(ofStandard))
	if err != nil {
		t.Fatal(err)
	}
	got := signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTwoKeysGiveTwoSignatures(t *testing.T) {
	other := keyPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", 24)))
	at := time.Unix(1614265330, 0)
	sign := func(text string) string {
		t.Helper()
		keys, err := parseKeys([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return signature(keys, "1", at, []byte("{}"))
	}
	if got, want := sign(other+"\n"+ofStandard+"\n"), sign(other)+" "+sign(ofStandard); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAKeyIsOneOfStandardWebhooks(t *testing.T) {
	of := func(n int) string {
		return keyPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", n)))
	}
	tests := map[string]struct {
		text string
		ok   bool
	}{
		"24 bytes":            {of(24), true},
		"64 bytes":            {of(64), true},
		"23 bytes":            {of(23), false},
		"65 bytes":            {of(65), false},
		"three keys":          {strings.Repeat(of(24)+"\n", 3), false},
		"one of two is wrong": {of(24) + "\nsecret", false},
		"no prefix":           {strings.TrimPrefix(of(24), keyPrefix), false},
		"no base64":           {keyPrefix + strings.Repeat("*", 32), false},
		"nothing":             {"", false},
		"a kubeconfig":        {strings.Repeat("clusters:\n", 1000), false},
	}
	for name, tc := range tests {
		keys, err := parseKeys([]byte(tc.text))
		if (err == nil) != tc.ok || tc.ok == (len(keys) == 0) {
			t.Errorf("%s: got %d keys and error %v", name, len(keys), err)
		}
		if err != nil && (!errors.Is(err, errKey) || tc.text != "" && strings.Contains(err.Error(), tc.text)) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
