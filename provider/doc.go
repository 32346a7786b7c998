// Package provider gives controllers of multicluster-runtime the clusters of Hanse's fleet, with the rights that each
// member grants to the ServiceAccount of the controllers' author: the consumer. It never uses the hub's credentials.
//
//   - A MemberCluster with a Secret of the consumer becomes a cluster. Without it, Get says what is missing.
//   - Each member has a goroutine of its own. No method that controllers call under a lock waits for a member.
//   - A member is engaged only after it has proved by its ID that it is the cluster that the MemberCluster names.
//   - A changed token, address or CA keeps the cluster, its caches and its watches. It is used once it has worked.
//   - A member that does not answer stays engaged with its caches, and its requests fail at once.
//
// docs/controllers.md of Hanse is the guide for authors, and ADR 41 has the reasons.
package provider
