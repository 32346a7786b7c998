// Package read reads objects of one member for users: lists of any kind, events, logs, the children of copies, and the
// copies that the hub has written.
//
//   - A list is read page by page. The size of a page and the sum of the pages are limited. If a member answers with
//     100 MB, the hub needs only the memory of one page. The caller charges all pages to the memory budget of the
//     member, by answer.Keep. Notes of a result name each list that was cut.
//   - A table has the columns that the member prints. Of its objects, only name, namespace and resourceVersion are
//     kept, because annotations may contain the values of a Secret.
//   - Texts in tables and events are printable. A log is returned unchanged: the caller escapes its control characters.
//   - Children and copies are listed only of kinds that the member lets the hub list. The hub first asks for these
//     rights (granted.go), so that no request is refused. Notes name the other kinds.
//   - Children are workloads: pods, and the built-in kinds that create pods, because API servers cannot find children
//     by their owner. Children in other namespaces are not searched, because users who may read the hub object may have
//     no right there. A cluster-scoped object therefore has no children here. Only name, kind and state are returned.
//   - Copies are listed by their metadata, in all kinds that the hub may list and write. An object with the hub's
//     labels and annotations is a copy only if the hub applied it for the hub object of the same kind and name, because
//     operators and backup tools copy labels and annotations.
//
// This package does not check the rights of the user, and does not remove values of Secrets. hub/views does both.
package read
