package access

import (
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Address returns the source address of a request, for a Party of requests whose user is not known yet.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// AccountNamespace returns the namespace of a user that is a ServiceAccount. All ServiceAccounts of one namespace are
// one Party, because a user who may create them could otherwise have any number of parties.
func AccountNamespace(user string) (namespace string, ok bool) {
	namespace, _, err := serviceaccount.SplitUsername(user)
	return namespace, err == nil
}
