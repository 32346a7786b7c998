// Package credential knows the credentials with which the hub reaches a member: it reads them, and issues and revokes
// tokens.
//
// Reading tells when a credential expires, to which Secret a token is bound, and when the hub must renew it. A token or
// certificate is parsed without checking its signature. The member checks it, and the claims of a token give no rights
// on the hub.
//
// Every token is bound to a Secret in the namespace hanse-system of the member. The token becomes invalid when the
// Secret is deleted. The Secret is empty: the member's API server only checks that it exists. The hub needs three
// rights there: to create Secrets, to delete the Secrets that this package names, and to request tokens of its
// ServiceAccount. The hub needs no right to read Secrets.
package credential
