package decide

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
)

// MaxPayloadBytes is the maximum size of a Payload, in bytes. It is less than the 1 MiB that a Secret may have, because
// the names in the Secret also need space.
const MaxPayloadBytes = 1000 << 10

// ErrPayloadTooLarge means that a part of a revision is too large for a Secret. A revision is one state of a hub object
// and its override rules.
var ErrPayloadTooLarge = errors.New("the revision is too large to be stored")

// ErrRevisionMissing means that a part of a revision is no longer stored. A revision is one state of a hub object and
// its override rules.
var ErrRevisionMissing = errors.New("this part of the revision is not stored any more")

// Payload is a part of a revision: a template, which is one state of a hub object, or a set of override rules.
type Payload struct {
	// Digest identifies the content. It is computed with a secret key, because the template may be a Secret whose values
	// could be guessed from a plain digest.
	Digest string
	// Content is the template, or the set of override rules, as JSON, compressed by gzip.
	Content []byte
}

// Inputs determine the content of all copies that have one revision of the hub object.
type Inputs struct {
	// Template is the hub object without the fields that are never copied to members.
	Template *unstructured.Unstructured
	// Whole is Template with the fields that are not sent because the hub's API server has filled them in, and with the
	// owners of the fields. A revision stores it, so that rules can read these fields.
	Whole *unstructured.Unstructured
	// Rules are the override rules that select the object, and the settings of its placement that change copies.
	Rules Rules
}

// HeldRules are the override rules of a stored revision, in the form that package overrides reads.
type HeldRules struct {
	Rules
	// Objects are override policies that are built from the stored Rules. All of them select the object.
	Objects []hubv1.OverridePolicyObject
}

// Rules are the override rules of a revision, and those settings of the placement that change copies. Override rules
// that exclude clusters are not included, because rollouts do not delay exclusions.
type Rules struct {
	MemberOwnedFields []string            `json:"memberOwnedFields,omitempty"`
	UnknownFields     hubv1.UnknownFields `json:"unknownFields,omitempty"`
	// RestartPaths are the restart paths of the placement, see hubv1.PlacementSpec.RestartPaths.
	RestartPaths []string `json:"restartPaths,omitempty"`
	Policies     []Policy `json:"policies,omitempty"`
}

// Policy is an override policy of a revision, as the revision stores it. The policy selects the object of the revision.
type Policy struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Tier is the tier of a ClusterOverridePolicy. It is empty for an OverridePolicy.
	Tier  hubv1.Tier           `json:"tier,omitempty"`
	Rules []hubv1.OverrideRule `json:"rules"`
}

// InputsOf returns the current inputs of an object. policies are the override policies that may select the object.
// denied are prefixes of labels and annotations that are never copied to members. settings is the spec of the
// placement. The error comes from package overrides.
func InputsOf(
	template *unstructured.Unstructured, object hubv1.SelectableObject, policies []hubv1.OverridePolicyObject, settings *hubv1.PlacementSpec, denied []string,
) (Inputs, error) {
	prepared, err := overrides.Prepare(template, denied)
	if err != nil {
		return Inputs{}, err
	}
	rules, err := RulesOf(object, policies, settings)
	return Inputs{Template: prepared.Manifest(), Whole: prepared.Whole(), Rules: rules}, err
}

// RulesOf returns the current override rules of an object, and the settings of its placement. See InputsOf.
func RulesOf(object hubv1.SelectableObject, policies []hubv1.OverridePolicyObject, settings *hubv1.PlacementSpec) (Rules, error) {
	matching, err := overrides.Matching(policies, object)
	if err != nil {
		return Rules{}, err
	}
	out := Rules{
		MemberOwnedFields: slices.Sorted(slices.Values(settings.Apply.MemberOwnedFields)), UnknownFields: settings.Apply.UnknownFields,
		RestartPaths: settings.RestartPaths(),
	}
	for _, p := range matching {
		rules := slices.DeleteFunc(slices.Clone(p.OverrideSpec().Rules), func(r hubv1.OverrideRule) bool { return r.Exclude })
		if len(rules) == 0 {
			continue
		}
		policy := Policy{Namespace: p.GetNamespace(), Name: p.GetName(), Rules: rules}
		if p.GetNamespace() == "" {
			policy.Tier = p.OverrideTier()
		}
		out.Policies = append(out.Policies, policy)
	}
	slices.SortFunc(out.Policies, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Pack returns the override rules in their stored form.
func (r Rules) Pack(key canonical.Key) (Payload, error) { return Pack(digest(key, r), r) }

// Digests returns the digests of the template and of the override rules. The digests do not depend on the number that
// the hub divides among clusters, such as spec.replicas. They also do not depend on the API version at which the hub
// reads the object.
func (i Inputs) Digests(key canonical.Key, division *hubv1.Division) (template, rules string) {
	return TemplateDigest(key, i.Template, division), digest(key, i.Rules)
}

// Held returns the override rules in the form that package overrides reads.
func (r Rules) Held() *HeldRules { return &HeldRules{Rules: r, Objects: r.objects()} }

// Named returns the digest by which a revision names this template: digest, or the digest that a hub gave it which sent
// all fields. Such a revision is the current one as long as the template does not change, so that an upgrade of the hub
// starts no rollout. revisions are the revisions of the binding.
func (i Inputs) Named(key canonical.Key, division *hubv1.Division, revisions []hubv1.ObjectRevision, digest string) string {
	earlier := TemplateDigest(key, i.Whole, division)
	named := func(digest string) bool {
		return slices.ContainsFunc(revisions, func(r hubv1.ObjectRevision) bool { return r.Template == digest })
	}
	if !named(digest) && named(earlier) {
		return earlier
	}
	return digest
}

// DefaultRules returns the sets of override rules that change no copy and set at most how to treat unknown fields, by
// their digests. Most objects share one of these sets. The hub therefore does not read them from a Secret, whose loss
// would concern all these objects. The hub still stores them, for replicas of a version that reads the Secret.
func DefaultRules(key canonical.Key) map[string]*HeldRules {
	out := map[string]*HeldRules{}
	for _, unknown := range []hubv1.UnknownFields{"", hubv1.UnknownFieldsReject, hubv1.UnknownFieldsDrop} {
		rules := Rules{UnknownFields: unknown}
		out[digest(key, rules)] = rules.Held()
	}
	return out
}

// TemplateDigest returns a digest of a template: a hub object from which the fields that are never copied to members
// were already removed. The digest ignores apiVersion, the owners of the fields, and the field that the hub divides
// among clusters.
func TemplateDigest(key canonical.Key, template *unstructured.Unstructured, division *hubv1.Division) string {
	counted := overrides.Without(maps.Clone(template.Object), "/metadata/managedFields")
	delete(counted, "apiVersion")
	if division != nil {
		counted = overrides.Without(counted, division.Path)
	}
	return digest(key, counted)
}

func digest(key canonical.Key, content any) string {
	sum := sha256.Sum256(canonical.Bytes(content))
	return hex.EncodeToString(key.Sum(sum[:])[:16])
}

// Pack returns a part of a revision in its stored form. content is this part: a template (one state of the hub object)
// or a set of override rules. The error is ErrPayloadTooLarge if the stored form is too large.
func Pack(digest string, content any) (Payload, error) {
	out, err := canonical.Compress(canonical.Bytes(content))
	if err != nil {
		return Payload{}, fmt.Errorf("packing a part of a revision: %w", err)
	}
	if len(out) > MaxPayloadBytes {
		return Payload{}, fmt.Errorf("%w: it has %d KiB, and at most %d KiB are possible: make the object or its override rules smaller", ErrPayloadTooLarge, len(out)>>10, MaxPayloadBytes>>10)
	}
	return Payload{Digest: digest, Content: out}, nil
}

// maxUnpackedBytes is the maximum size of a Payload's content after decompression, in bytes. No API server accepts an
// object of that size.
const maxUnpackedBytes = 16 << 20

func unpack(content []byte) ([]byte, error) {
	text, err := canonical.Decompress(content, maxUnpackedBytes)
	if err != nil {
		return nil, fmt.Errorf("reading a part of a revision: %w", err)
	}
	return text, nil
}

// ReadTemplate returns the template from the content of a Payload. A template is one state of a hub object.
func ReadTemplate(content []byte) (*unstructured.Unstructured, error) {
	text, err := unpack(content)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &o.Object); err != nil {
		return nil, fmt.Errorf("reading the template of a revision: %w", err)
	}
	return o, nil
}

// ReadRules returns the override rules in a Payload.
func ReadRules(content []byte) (*HeldRules, error) {
	text, err := unpack(content)
	if err != nil {
		return nil, err
	}
	var rules Rules
	if err := json.Unmarshal(text, &rules); err != nil {
		return nil, fmt.Errorf("reading the override rules of a revision: %w", err)
	}
	return rules.Held(), nil
}

func (r Rules) objects() []hubv1.OverridePolicyObject {
	out := make([]hubv1.OverridePolicyObject, 0, len(r.Policies))
	for _, p := range r.Policies {
		if p.Namespace != "" {
			o := &hubv1.OverridePolicy{}
			o.Namespace, o.Name, o.Spec.Rules = p.Namespace, p.Name, p.Rules
			out = append(out, o)
			continue
		}
		o := &hubv1.ClusterOverridePolicy{}
		o.Name, o.Spec.Rules, o.Spec.Tier = p.Name, p.Rules, p.Tier
		out = append(out, o)
	}
	return out
}
