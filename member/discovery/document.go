package discovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member/openapi"
)

const (
	// schemaFor is the maximum age of a cached schema. After that, it is fetched again even without an event.
	schemaFor = 10 * time.Minute
	// trustedFor is the maximum age of a cached schema that lacks a field of a manifest. An older schema is fetched again,
	// unless the hub watches the definition of the kind.
	trustedFor = 10 * time.Second
	// publishLag is how long an API server may take to publish the schema of a new definition. An answer without a schema
	// is valid for the same time.
	publishLag = 5 * time.Second
	// unreadableFor is how long a schema that could not be read is not requested again.
	unreadableFor = time.Minute
)

// maxDocument is the maximum size of the OpenAPI document of a group and version. For comparison, the document of
// the core group has less than 2 MiB.
var maxDocument = answer.Bounds{Bytes: 8 << 20, Values: 1 << 18}

// document is the last answer of the member about the schema of one kind. Kinds.mu guards its fields, and is not held
// during a request.
type document struct {
	turn chan struct{} // has a value while a caller fetches the schema

	schema *openapi.Schema // nil if the schema is not known
	size   int64           // the memory that counts for the schema
	etag   string
	asked  time.Time     // the time of the last answer; zero before the first one
	holds  time.Duration // how long the answer is valid
	// invalidations counts the events after which the schema must be fetched again. settled is the value of invalidations
	// at the last request. If both differ, the last answer is no longer valid.
	invalidations, settled int
}

// current reports whether the member's last answer about the schema is still valid.
func (d *document) current() bool {
	return !d.asked.IsZero() && d.invalidations == d.settled && time.Since(d.asked) < d.holds
}

// schemaOf returns the schema of a kind. The result is nil if the member publishes no readable schema. A request is
// sent only if there is no valid answer, and only one at a time for each kind.
func (k *Kinds) schemaOf(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema {
	k.mu.Lock()
	d := &k.known(gvk).document
	known, current := d.schema, d.current()
	k.mu.Unlock()
	if current {
		return known
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return known
	}
	k.mu.Lock()
	asked := *d
	k.mu.Unlock()
	if asked.current() { // another caller has fetched the schema meanwhile
		return asked.schema
	}
	var now *openapi.Schema
	ctx, done := answer.Keep(answer.Within(ctx, maxDocument))
	defer done()
	raw, etag, err := k.download(ctx, gvk.GroupVersion(), asked.etag)
	if err == nil {
		now, err = schemas.parse(raw, gvk)
	}
	if errors.Is(err, openapi.ErrTooManyFields) {
		k.options.Retained.Report("the schema of "+gvk.Kind, openapi.ErrTooManyFields)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		err = k.retain(gvk, d, now)
	}
	switch {
	case errors.Is(err, errUnchanged):
		d.holds = schemaFor
	case errors.Is(err, errUnpublished), errors.Is(err, openapi.ErrNoSchema):
		_ = k.retain(gvk, d, nil) // nothing always fits
		d.schema, d.etag, d.holds = nil, "", publishLag
	case err != nil:
		d.holds = unreadableFor // the known schema, if there is one, is used meanwhile
	default:
		d.schema, d.etag, d.holds = now, etag, schemaFor
	}
	d.asked, d.settled = time.Now(), asked.invalidations
	return d.schema
}

// maxETagLength is the maximum size of an ETag that is kept, in bytes.
const maxETagLength = 128

// retain counts the memory of a new schema in place of the known one. If the schema is too large, retain reports that
// and returns an error. The caller holds k.mu.
func (k *Kinds) retain(gvk schema.GroupVersionKind, d *document, now *openapi.Schema) error {
	if k.kinds[gvk] == nil || &k.kinds[gvk].document != d {
		return nil // the kind is no longer cached, so that nothing is kept
	}
	size := int64(0)
	if now != nil {
		size = now.Size()
	}
	if err := k.retained.Add(size - d.size); err != nil {
		k.options.Retained.Report("the schema of "+gvk.Kind, err)
		return err
	}
	d.size = size
	return nil
}

var (
	errUnchanged   = errors.New("the schema has not changed")
	errUnpublished = errors.New("the member publishes no schema for the group and version")
)

// download reads the OpenAPI document of a group and version. The result is empty if the document still has the known
// etag.
func (k *Kinds) download(ctx context.Context, gv schema.GroupVersion, known string) (raw []byte, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	url := k.options.Discovery.RESTClient().Get().AbsPath(path).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, "", fmt.Errorf("asking for the schemas of %s: %w", gv, err)
	}
	request.Header.Set("Accept", "application/json")
	if known != "" {
		request.Header.Set("If-None-Match", known)
	}
	response, err := k.options.HTTP.Do(request)
	if err != nil {
		return nil, "", fmt.Errorf("asking for the schemas of %s: %w", gv, err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, "", errUnchanged
	case http.StatusNotFound:
		return nil, "", errUnpublished
	default:
		return nil, "", fmt.Errorf("asking for the schemas of %s: the cluster answered %d", gv, response.StatusCode)
	}
	raw, err = io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("reading the schemas of %s: %w", gv, err)
	case len(raw) == 0: // a server answers like this if it has served the group only for a moment
		return nil, "", errUnpublished
	}
	etag = response.Header.Get("ETag")
	if len(etag) > maxETagLength {
		etag = ""
	}
	return raw, etag, nil
}

// schemas has the parsed schemas of all members, so that a document which many members publish is parsed and stored
// once. The key is the content of the document, not its name or etag. A member therefore cannot change the schema of
// another member.
var schemas sharedSchemas

type sharedSchemas struct {
	mu   sync.Mutex
	kept map[schemaKey]weak.Pointer[openapi.Schema]
}

type schemaKey struct {
	document [sha256.Size]byte
	kind     schema.GroupVersionKind
}

func (s *sharedSchemas) parse(raw []byte, gvk schema.GroupVersionKind) (*openapi.Schema, error) {
	key := schemaKey{document: sha256.Sum256(raw), kind: gvk}
	s.mu.Lock()
	found := s.kept[key].Value()
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	found, err := openapi.Parse(raw, gvk)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ schemaKey, kept weak.Pointer[openapi.Schema]) bool { return kept.Value() == nil })
	if s.kept == nil {
		s.kept = map[schemaKey]weak.Pointer[openapi.Schema]{}
	}
	s.kept[key] = weak.Make(found)
	return found, nil
}
