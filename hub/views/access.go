package views

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	pathcontent "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/view/wire"
)

// who is the user that has sent a request.
type who struct {
	name  string
	info  authenticationv1.UserInfo
	asked []string // names of the requested objects, for the log
	// signed is the digest of the body that the user has signed. It is empty if the user has sent a token.
	signed string
}

// identify returns the user of a token by a TokenReview on the hub's API server. The token may be valid for the API
// server, or only for the audience of this service. A user without a token signs the request with the key of the user's
// CertificateSigningRequest instead, see proof.go.
func (v *View) identify(ctx context.Context, q *question, token string) (who, error) {
	if strings.HasPrefix(token, proofPrefix) {
		return v.identifyByProof(ctx, token, q.path)
	}
	for _, audiences := range [][]string{nil, {wire.Audience}} {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		if err := v.opts.Client.Create(ctx, review); err != nil {
			return who{}, v.internal("finding the user of a token", err)
		}
		if review.Status.Authenticated {
			return who{name: review.Status.User.Username, info: review.Status.User}, nil
		}
	}
	return who{}, apierrors.NewUnauthorized("the hub's API server does not know the token, or the token has expired: use a new token")
}

// mayLook checks that the user has the custom RBAC verb view on the MemberCluster. A user without this right may still
// view the objects of one namespace, with the verb view on the ResourceBindings of this namespace.
func (v *View) mayLook(ctx context.Context, q *question) error {
	err := needsRole(q.who, q.namespace)
	if q.cluster != "" {
		if err = v.mayView(ctx, q); !apierrors.IsForbidden(err) {
			return err
		}
		if q.namespace == "" {
			return err
		}
	}
	allowed, asking := v.mayViewNamespace(ctx, q.who, q.namespace)
	if asking != nil {
		return asking
	}
	if allowed {
		q.bounded = true
		return nil
	}
	return err
}

// mayView returns an error if the user lacks the custom RBAC verb view on the MemberCluster.
func (v *View) mayView(ctx context.Context, q *question) error {
	members := hubv1.GroupVersion.WithResource("memberclusters").GroupResource()
	allowed, err := v.may(ctx, q.who, authorizationv1.ResourceAttributes{Verb: "view", Group: members.Group, Resource: members.Resource, Name: q.cluster})
	if err == nil && !allowed {
		err = needsView(q)
	}
	return err
}

// needsView returns the error for a user without the verb view on the MemberCluster.
func needsView(q *question) error {
	members := hubv1.GroupVersion.WithResource("memberclusters").GroupResource()
	return apierrors.NewForbidden(members, q.cluster, fmt.Errorf("user %q needs the verb view on the MemberCluster%s", q.who.name, roleIn(q.namespace)))
}

// roleIn returns a text that names the ClusterRole with which a user may view the objects of a namespace. If namespace
// is empty, the text is empty, too.
func roleIn(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(", or on resourcebindings in namespace %s: ask for the ClusterRole hanse-view in namespace %s", namespace, namespace)
}

// placed is a hub object whose binding names the requested member.
type placed struct {
	id      hubv1.ObjectIdentity
	binding hubv1.BindingObject // shared with the cache
	// resource is the resource of the hub object's kind on the hub's API server.
	resource schema.GroupVersionResource
}

// maxNameLength is the maximum length of a name that an API server accepts.
const maxNameLength = 253

// find returns the hub object, if the user may get the object and its binding names the requested member. Otherwise
// find returns the same error as for a missing object. The error therefore does not reveal whether the object exists.
func (v *View) find(ctx context.Context, q *question, o wire.Object) (placed, error) {
	p := placed{id: o.Identity()}
	if err := checkName(o); err != nil {
		return p, err
	}
	q.who.asked = append(q.who.asked, p.id.String())
	refused := apierrors.NewForbidden(schema.GroupResource{Group: o.Group, Resource: o.Kind}, o.Name, fmt.Errorf(
		"user %q may not get %s on the hub, or the hub does not send it to cluster %s", q.who.name, p.id, q.cluster))
	if q.bounded && o.Namespace != q.namespace {
		return p, refused
	}
	p.binding = hubv1.NewBinding(p.id.BindingKey())
	err := v.opts.Client.Get(ctx, p.id.BindingKey(), p.binding, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return p, refused
	case err != nil:
		return p, v.internal("reading a binding", err)
	case hubv1.ObjectOf(p.binding) != p.id || p.binding.BindingSpec().Target(q.cluster) == nil:
		return p, refused
	}
	mapping, err := v.opts.Mapper.RESTMapping(p.id.GroupKind())
	switch {
	case meta.IsNoMatchError(err) && p.binding.BindingSpec().ObjectRef.Bundle != nil:
		// A Bundle may have objects of a kind that the hub does not serve. In this case, the user's rights are checked for
		// the usual resource name of the kind, because the RESTMapper does not know the real one.
		p.resource, _ = meta.UnsafeGuessKindToResource(p.binding.BindingSpec().ObjectRef.GroupVersionKind())
	case meta.IsNoMatchError(err):
		return p, refused // return the refusal, because the kind's CRD does not exist on the hub
	case err != nil:
		return p, v.resourceUnknown(p.id.GroupKind(), err)
	default:
		p.resource = mapping.Resource
	}
	allowed, err := v.may(ctx, q.who, authorizationv1.ResourceAttributes{
		Verb: "get", Group: o.Group, Version: p.resource.Version, Resource: p.resource.Resource, Namespace: o.Namespace, Name: o.Name,
	})
	if err == nil && !allowed {
		err = refused
	}
	return p, err
}

// checkName returns an error if the request does not name an object with a valid kind, namespace and name.
func checkName(o wire.Object) error {
	if o.Kind == "" || o.Name == "" || max(len(o.Group), len(o.Kind), len(o.Namespace), len(o.Name)) > maxNameLength {
		return apierrors.NewBadRequest("the request names no object")
	}
	if err := checkNamespace(o.Namespace); err != nil {
		return err
	}
	if err := checkSegment("group", o.Group); err != nil {
		return err
	}
	return checkSegment("name", o.Name)
}

// checkNamespace returns an error for a name that no namespace can have. Namespaces and names in a request become parts
// of paths in requests to members. A "/" in them could select another resource.
func checkNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("namespace %.64q is not valid: %s", namespace, faults[0]))
	}
	return nil
}

// checkSegment returns an error if a text cannot be one segment of a path. An empty text is valid: an optional segment
// is left out. field is the name of the request's field with this text.
func checkSegment(field, text string) error {
	if faults := pathcontent.IsPathSegmentName(text); len(faults) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%s %.64q is not valid: it %s", field, text, faults[0]))
	}
	return nil
}

// resourceUnknown returns the error for a kind whose resource could not be looked up.
func (v *View) resourceUnknown(kind schema.GroupKind, err error) error {
	_ = v.internal("finding the resource of "+kind.String(), err)
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the hub cannot find the resource of %s now (%s): try again", kind, causeOf(err)))
}

// may reports whether a user has a right on the hub, by a SubjectAccessReview.
func (v *View) may(ctx context.Context, user who, what authorizationv1.ResourceAttributes) (bool, error) {
	has, err := access.Has(ctx, v.opts.Client, user.info, what)
	if err != nil {
		return false, v.internal("checking a right of a user", err)
	}
	return has, nil
}

// causeOf returns why a request failed, without the address of the server.
func causeOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return "its API server answers " + string(reason)
	}
	return "its API server does not answer"
}

// internal logs an error that the user cannot mend and must not read. It returns an error for the user without the
// details.
func (v *View) internal(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	v.opts.Logger.Error(err, "Answering a request of a user")
	return apierrors.NewServiceUnavailable("the hub could not ask its API server: try again, or see the log of hanse-hub")
}
