package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

// isGone reports whether the error of a request means that the server serves the kind and has no such object. A 404 for
// a kind that is not served is recognised by its body, which is not a Status: client-go then adds the cause
// UnexpectedServerResponse to the error.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err)
}

func isNamespaceMissing(err error) bool {
	s := statusOf(err)
	return isGone(err) && s.Details != nil && s.Details.Kind == "namespaces"
}

// isFieldConflict reports whether the server has refused an apply because other managers own some of its fields with
// other values.
func isFieldConflict(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// isChanged reports whether the server has refused a write because the object has changed since the hub read it, or was
// created meanwhile.
func isChanged(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && !isFieldConflict(err)
}

func statusOf(err error) metav1.Status {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return s.Status()
	}
	return metav1.Status{}
}

// duplicateEntries is a part of the error message that server-side apply returns for a list in which two entries have
// the same key. The API server accepts such a list in a create without server-side apply.
const duplicateEntries = "duplicate entries for key"

var (
	rbacDenied = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)
	// conflictManager matches the message of one cause of a conflict, such as: conflict with "manager" using apps/v1.
	// duplicated matches the path and the keys in a message such as: .spec.containers[name="web"].env: duplicate entries
	// for key [name="A"].
	duplicated = regexp.MustCompile(`(\.\S+): ` + duplicateEntries + ` \[((?:[^"\]]|"(?:[^"\\]|\\.)*")*)\]`)
	// ofBinding matches the names in a text such as: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x.
	ofBinding       = regexp.MustCompile(`(AdmissionPolicy '[^']*') with binding '[^']*'`)
	conflictManager = regexp.MustCompile(`^conflict with "((?:[^"\\]|\\.)*)"`)
)

// classify turns the error of a request into an outcome.
func classify(err error, t target) member.Outcome {
	status := statusOf(err)
	text := status.Message
	var objectErr *informer.ObjectError
	switch {
	case answer.IsTooLarge(err):
		return refused(hubv1.ReasonAnswerTooLarge, member.RetrySlowly, "the cluster's answer about %s was dropped: %s", t, tooLarge(err))
	case errors.As(err, &objectErr):
		return refused(hubv1.ReasonServerError, member.RetrySlowly, "%s: look for a faulty or hostile server there", objectErr)
	case isNotServed(err):
		return refused(hubv1.ReasonKindNotServed, member.RetrySlowly, "the cluster does not serve %s in %s: install its definition there",
			t.gvk.Kind, t.gvk.GroupVersion())
	case status.Code == 0:
		out := refused(hubv1.ReasonUnreachable, member.RetrySoon, "the cluster did not answer: %s", cause(err))
		out.Applied = metav1.ConditionUnknown
		return out
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return refused(hubv1.ReasonNamespaceTerminate, member.RetrySlowly,
			"namespace %s is being deleted on the cluster: the hub writes the object again when the namespace exists again", t.key.Namespace)
	case isNamespaceMissing(err):
		return refused(hubv1.ReasonNamespaceMissing, member.RetrySlowly, "namespace %s is missing on the cluster", t.key.Namespace)
	case strings.Contains(text, "denied the request") || strings.Contains(text, "denied request"):
		return refused(hubv1.ReasonAdmissionDenied, member.RetrySlowly, "%s", t.published(denial(text)))
	case strings.Contains(text, "field not declared in schema"):
		return refused(hubv1.ReasonFieldsNotServed, member.RetrySlowly, "the cluster's definition of %s has no field %s: update the definition there",
			t.gvk.Kind, undeclared(text))
	case strings.Contains(text, duplicateEntries):
		return refused(hubv1.ReasonManifestRefused, member.RetrySlowly, "%s", t.duplicates(text))
	case strings.Contains(text, "failed to create typed patch object"), strings.Contains(text, "failed to convert new object"):
		return refused(hubv1.ReasonManifestRefused, member.RetrySlowly, "%s", t.published(after(text, "): ")))
	case status.Code == http.StatusRequestEntityTooLarge, strings.Contains(text, "request is too large"),
		strings.Contains(text, "message larger than max"): // the limits of the API server, of etcd and of its client
		return refused(hubv1.ReasonTooLarge, member.RetryNever, "the cluster refuses %s as too large: make the object smaller: %s", t, t.published(text))
	}
	return byCode(err, status, t)
}

// tooLarge returns an error that names the limit, without the text that HTTP clients add.
func tooLarge(err error) error {
	var large *answer.TooLargeError
	if errors.As(err, &large) {
		return large
	}
	return err
}

// cause returns why there was no response. It leaves out ports and times. Otherwise the message would differ at each
// attempt, and each attempt would write the message into the binding again.
func cause(err error) string {
	var timeout interface{ Timeout() bool }
	var op *net.OpError
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.As(err, &op) && op.Err != nil:
		return op.Op + ": " + op.Err.Error()
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}

// byCode classifies a response by its HTTP status code.
func byCode(err error, status metav1.Status, t target) member.Outcome {
	switch {
	case status.Code == http.StatusUnauthorized:
		return refused(hubv1.ReasonUnauthorized, member.RetrySlowly, "the cluster does not accept the hub's credentials: run hansectl rotate NAME --member-kubeconfig FILE")
	case status.Code == http.StatusForbidden:
		return forbidden(status, t)
	case status.Code == http.StatusTooManyRequests:
		return later(refused(hubv1.ReasonThrottled, member.RetryAfter, "the cluster asks for fewer requests"), err)
	case status.Code >= 500:
		out := refused(hubv1.ReasonServerError, member.RetrySoon, "the cluster answered %d: %s", status.Code, t.published(status.Message))
		if _, ok := apierrors.SuggestsClientDelay(err); ok {
			return later(out, err)
		}
		return out
	case status.Code == http.StatusConflict:
		return refused(hubv1.ReasonPending, member.RetrySoon, "%s changed on the cluster while it was written", t)
	}
	if kept := keptVersions(status); isDefinition(t.gvk.GroupKind()) && len(kept) > 0 {
		return refused(hubv1.ReasonStoredVersionKept, member.RetrySlowly,
			"the cluster stores objects at %s, which the new definition lacks: migrate them there, and remove it from status.storedVersions of %s",
			strings.Join(kept, ", "), t.key.Name)
	}
	return refused(hubv1.ReasonManifestRefused, member.RetrySlowly, "%s", t.invalid(status))
}

// keptVersions returns the versions in which a server stores objects, if the server has refused a
// CustomResourceDefinition because it lacks them.
func keptVersions(status metav1.Status) []string {
	if status.Details == nil {
		return nil
	}
	var out []string
	for _, c := range status.Details.Causes {
		if !strings.HasPrefix(c.Field, "status.storedVersions") {
			continue
		}
		version := "an unnamed version"
		if quoted, err := strconv.QuotedPrefix(after(c.Message, " value: ")); err == nil {
			version = quoted
		}
		out = append(out, version)
	}
	slices.Sort(out) // servers return the causes in varying order
	return out
}

// later sets the pause before the next try to the pause that the server has asked for.
func later(out member.Outcome, err error) member.Outcome {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	out.Retry, out.After = member.RetryAfter, min(time.Duration(max(seconds, 1))*time.Second, answer.MaxPause)
	return out
}

// forbidden returns the outcome for a response 403. The cause is either a missing right, which the chart of the member
// can grant, or a denial by admission, such as a quota.
func forbidden(status metav1.Status, t target) member.Outcome {
	if m := rbacDenied.FindStringSubmatch(status.Message); m != nil {
		where, what := "on this cluster", "the kind"
		if m[4] != "" {
			where, what = "in namespace "+m[4]+" of this cluster", "the kind, for this namespace or for all,"
		}
		kind := schema.GroupResource{Group: m[3], Resource: m[2]} // the syntax of hansectl join --grant
		return refused(hubv1.ReasonForbidden, member.RetrySlowly,
			"the hub may not %s %s %s: run hansectl join with --grant %s, or add %s to grantedKinds of its chart hanse-member", m[1], kind, where, kind, what)
	}
	if strings.Contains(status.Message, "attempting to grant RBAC permissions") {
		return refused(hubv1.ReasonForbidden, member.RetrySlowly,
			"%s grants rights that the hub does not have on this cluster: run hansectl join with --grant-operator, or add its rules to operators of the chart hanse-member there", t)
	}
	return refused(hubv1.ReasonAdmissionDenied, member.RetrySlowly, "%s", t.published(after(status.Message, "is forbidden: ")))
}

// fieldConflict returns the outcome with the fields and managers from the server's response.
func fieldConflict(err error, t target, live *unstructured.Unstructured) member.Outcome {
	var drift []member.FieldDrift
	for _, c := range statusOf(err).Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		d := member.FieldDrift{Path: c.Field, Manager: content.UnknownManager}
		if m := conflictManager.FindStringSubmatch(c.Message); m != nil {
			d.Manager = m[1]
		}
		drift = append(drift, d)
	}
	slices.SortFunc(drift, func(a, b member.FieldDrift) int { return strings.Compare(a.Path+a.Manager, b.Path+b.Manager) })
	drift = drift[:min(len(drift), 3)]
	out := refused(hubv1.ReasonFieldConflict, member.RetrySlowly, "%s", t.conflictText(drift))
	out.Drifted = drift
	return seen(out, live)
}

// denial returns the text of an admission denial without the name of the object, which users know, and without the
// binding of a policy. The text that the author of the policy has written comes last, and should stay whole.
func denial(text string) string {
	if object, rest, ok := strings.Cut(text, " is forbidden: "); ok && !strings.Contains(object, "denied") {
		text = rest
	}
	return ofBinding.ReplaceAllString(text, "$1")
}

// undeclared returns the path from a message such as: .spec.foo: field not declared in schema.
func undeclared(text string) string {
	text, _, _ = strings.Cut(text, ": field not declared in schema")
	if i := strings.LastIndex(text, " "); i >= 0 {
		text = text[i+1:]
	}
	return text
}

// duplicates returns a text with the lists that have duplicate entries, and the duplicate keys.
func (t target) duplicates(text string) string {
	var found []string
	for _, m := range duplicated.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1]+" has two entries"+withKey(m[2]))
	}
	if len(found) == 0 || t.secret() {
		return t.published(after(text, "): "))
	}
	const maxNamed = 2
	list := strings.Join(found[:min(len(found), maxNamed)], "; ")
	if more := len(found) - maxNamed; more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}
	return list + ": server-side apply accepts only one: remove the others on the hub"
}

// withKey returns the text about a duplicate entry. For an entry of a set it leaves out the value, because the value
// may be secret.
func withKey(key string) string {
	if strings.HasPrefix(key, "=") {
		return " that are equal"
	}
	return " with " + strings.ReplaceAll(key, ",", ", ")
}

func after(text, mark string) string {
	if _, rest, ok := strings.Cut(text, mark); ok {
		return rest
	}
	return text
}

// invalid lists the fields that a server refused, without their values, which may be secret.
func (t target) invalid(status metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return t.published(status.Message)
	}
	var parts []string
	for _, c := range status.Details.Causes {
		text := c.Field
		if why := withoutValue(c.Message); !t.secret() && why != "" {
			text = fmt.Sprintf("%s: %s", c.Field, why)
		}
		parts = append(parts, text)
	}
	slices.Sort(parts) // servers return the causes in varying order
	return "the cluster refuses " + strings.Join(parts, "; ")
}

// withoutValue removes the quoted value from a message such as: Invalid value: "x": must be y.
func withoutValue(message string) string {
	kind, rest, ok := strings.Cut(message, " value: ")
	if !ok {
		return message
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		rest = rest[len(quoted):]
	} else if i := strings.LastIndex(rest, ": "); i >= 0 {
		rest = rest[i:]
	} else {
		rest = ""
	}
	return kind + " value" + rest
}

// published returns the text of a server, or a replacement if the text may not be shown. Texts about Secrets are not
// shown, because they may quote values.
func (t target) published(text string) string {
	if t.secret() {
		return "the cluster's answer is not shown, because it may quote the content of the Secret"
	}
	return text
}

func (t target) secret() bool { return hubv1.IsSecret(t.gvk.GroupKind()) }
