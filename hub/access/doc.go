// Package access decides whether a request to the hub may run: rights.go checks the user's rights with
// SubjectAccessReviews, and slots.go limits the number of concurrent requests, in total and for each party: a user, a
// namespace or a peer. No party can therefore block the others.
//
// The caller determines the parties of a request, and how long the request waits.
package access
