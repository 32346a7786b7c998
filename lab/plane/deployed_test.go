package plane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsThatNeedAPodAreLeftOut(t *testing.T) {
	tests := map[string]struct{ args, want []string }{
		"other arguments stay": {
			[]string{"--kubelet-service=kube-system/kubelet", "--log-level", "debug"}, []string{"--kubelet-service=kube-system/kubelet", "--log-level", "debug"},
		},
		"an address is left out with its value":            {[]string{"--web.listen-address", ":8080", "--a"}, []string{"--a"}},
		"an address is left out that has its value":        {[]string{"-web.listen-address=:8080", "--a"}, []string{"--a"}},
		"TLS and its files are left out":                   {[]string{"--web.enable-tls", "--web.cert-file=/tls/crt", "--web.key-file=/tls/key"}, nil},
		"a value that looks like a flag's name is no flag": {[]string{"--controller-id", "apiserver"}, []string{"--controller-id", "apiserver"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, outsidePod(test.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
