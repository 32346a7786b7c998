package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	issued  = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	expires = issued.Add(Lifetime)
)

func token(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func bound(namespace, account, secret, uid string) string {
	return token(fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"namespace":%q,"serviceaccount":{"name":%q},"secret":{"name":%q,"uid":%q}}}`,
		issued.Unix(), expires.Unix(), namespace, account, secret, uid))
}

func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: issued, NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestWhatCredentialsSayOfThemselves(t *testing.T) {
	tests := map[string]struct {
		token, certificate string
		want               Credential // expected credential, without its ID
	}{
		"a token of the hub's account ends with its Secret": {
			token: bound("hanse-system", "hanse", "hanse-token-a", "uid-1"),
			want:  Credential{Issued: issued, Expires: expires, Secret: "hanse-token-a", UID: "uid-1", Own: true},
		},
		"a Secret of another name is not revoked": {
			token: bound("hanse-system", "hanse", "database", "uid-1"), want: Credential{Issued: issued, Expires: expires, Own: true},
		},
		"a uid that no API server makes is not taken": {
			token: bound("hanse-system", "hanse", "hanse-token-a", strings.Repeat("u", 65)), want: Credential{Issued: issued, Expires: expires, Own: true},
		},
		"another account is not renewed": {
			token: bound("default", "hanse", "hanse-token-a", "uid-1"), want: Credential{Issued: issued, Expires: expires},
		},
		"a token that does not expire ends with its Secret": {
			token: token(`{"kubernetes.io/serviceaccount/namespace":"hanse-system","kubernetes.io/serviceaccount/secret.name":"hanse-token",
				"kubernetes.io/serviceaccount/service-account.name":"hanse"}`),
			want: Credential{Secret: "hanse-token", Own: true},
		},
		"a token of somebody else has an end":         {token: token(fmt.Sprintf(`{"exp":%d}`, expires.Unix())), want: Credential{Expires: expires}},
		"a time that no status can hold is not known": {token: token(`{"exp":1e300,"iat":-5}`)},
		"a token without claims says nothing":         {token: "static"},
		"claims that are no JSON say nothing":         {token: "a.!!.b"},
		"a client certificate has an end":             {certificate: certificate(t), want: Credential{Issued: issued, Expires: expires}},
		"something else than a certificate does not":  {certificate: "PEM"},
		"nothing": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.token, tc.certificate)
			if none := tc.token == "" && tc.certificate == ""; (got.ID == "") != none || strings.Contains(tc.token+tc.certificate, got.ID) && !none {
				t.Errorf("the id is %q", got.ID)
			}
			got.ID = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenCredentialsAreRenewed(t *testing.T) {
	day := func(n float64) time.Time { return issued.Add(time.Duration(n * 24 * float64(time.Hour))) }
	tests := map[string]struct {
		of             Credential
		earliest, soon time.Time // renewal is between the two
	}{
		"after two thirds of their life":             {Credential{Issued: issued, Expires: expires}, day(18.5), day(20)},
		"with another life":                          {Credential{Issued: issued, Expires: day(3)}, day(1.85), day(2)},
		"ten days before the end of an unknown life": {Credential{Expires: expires}, day(18.5), day(20)},
		"never if they do not expire":                {Credential{Issued: issued}, time.Time{}, time.Time{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.SoonAt(); !got.Equal(tc.soon) {
				t.Errorf("soon from %s, want %s", got, tc.soon)
			}
			for i := range 300 {
				if got := tc.of.RenewAt(fmt.Sprintf("cluster-%d", i)); got.Before(tc.earliest) || got.After(tc.soon) {
					t.Errorf("renewed at %s, want between %s and %s", got, tc.earliest, tc.soon)
				}
			}
		})
	}
}

func TestClustersThatJoinedTogetherAreNotRenewedTogether(t *testing.T) {
	c := Credential{Issued: issued, Expires: expires}
	perHour := map[time.Time]int{}
	for i := range 300 {
		perHour[c.RenewAt(fmt.Sprintf("eu-%d", i)).Truncate(time.Hour)]++
	}
	for at, n := range perHour {
		if n > 30 {
			t.Errorf("%d of 300 clusters are renewed in the hour from %s", n, at)
		}
	}
}

func TestATokenFromAMemberIsUsable(t *testing.T) {
	good := Of(bound("hanse-system", "hanse", "hanse-token-b", "uid-2"), "")
	if !good.Usable(issued) {
		t.Error("a good one is not")
	}
	for name, usable := range map[string]bool{
		"bound to another Secret":  Of(bound("hanse-system", "hanse", "database", "uid-2"), "").Usable(issued),
		"expired":                  good.Usable(expires),
		"of another account":       Of(bound("hanse-system", "other", "hanse-token-b", "uid-2"), "").Usable(issued),
		"something that is no JWT": Of("hello", "").Usable(issued),
	} {
		if usable {
			t.Errorf("a token is taken that is %s", name)
		}
	}
}
