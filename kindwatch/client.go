package kindwatch

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// NewClient returns a dynamic client that parses each object and each list once. The one of client-go gives the same
// answers, but looks through the JSON of every object, of every list and of every event of a watch about ten times,
// which costs more than all else that is done with it. What its watches bring is for this package alone: it is read
// when it is needed.
func NewClient(cfg *rest.Config) (dynamic.Interface, error) {
	c, err := NewRESTClient(cfg)
	if err != nil {
		return nil, err
	}
	return dynamic.New(c), nil
}

// NewRESTClient returns the client that NewClient wraps. Its requests also give the answer to a deletion.
func NewRESTClient(cfg *rest.Config) (rest.Interface, error) {
	config := dynamic.ConfigFor(cfg)
	config.NegotiatedSerializer = negotiated{config.NegotiatedSerializer}
	config.APIPath = "/unused" // every request of a dynamic client has its whole path
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// negotiated decodes JSON in its own way and leaves all else as it is.
type negotiated struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := append([]runtime.SerializerInfo(nil), n.NegotiatedSerializer.SupportedMediaTypes()...)
	for i, info := range infos {
		if info.MediaType != runtime.ContentTypeJSON || info.StreamSerializer == nil {
			continue
		}
		stream := *info.StreamSerializer
		stream.Serializer, stream.Framer = events{stream.Serializer}, frames{stream.Framer}
		infos[i].Serializer, infos[i].StreamSerializer = objects{info.Serializer}, &stream
	}
	return infos
}

// objects decodes a single object and a list of them. A Status and what cannot be read are left to the serializer that
// it wraps.
type objects struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (s objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		return s.unread(data, defaults)
	}
	if _, ok := into.(runtime.Unstructured); !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	read := &unstructured.Unstructured{Object: map[string]any{}}
	if err := utiljson.Unmarshal(data, &read.Object); err != nil {
		return s.Serializer.Decode(data, defaults, into)
	}
	gvk := read.GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" || gvk.Kind == "Status" {
		return s.Serializer.Decode(data, defaults, into)
	}
	items, isList := read.Object["items"].([]any)
	switch into := into.(type) {
	case *unstructured.Unstructured:
		if !isList {
			into.Object = read.Object
			return into, &gvk, nil
		}
	case *unstructured.UnstructuredList:
		if objects, ok := elements(items, gvk); isList && ok {
			delete(read.Object, "items")
			into.Object, into.Items = read.Object, objects
			return into, &gvk, nil
		}
	}
	return s.Serializer.Decode(data, defaults, into)
}

// elements are the objects of a list; false if one of them is none. Those of built-in kinds do not say what they are.
func elements(items []any, list schema.GroupVersionKind) ([]unstructured.Unstructured, bool) {
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		u := &objects[i]
		u.Object = object
		if u.GetKind() == "" && u.GetAPIVersion() == "" {
			u.SetGroupVersionKind(list.GroupVersion().WithKind(strings.TrimSuffix(list.Kind, "List")))
		}
	}
	return objects, true
}

// unread is how the object of an event is decoded: no more of it than is needed. The event holds until the next one,
// the object longer.
func (s objects) unread(data []byte, defaults *schema.GroupVersionKind) (runtime.Object, *schema.GroupVersionKind, error) {
	g, ok := look(data)
	if !ok || g.kind == "Status" {
		return s.Serializer.Decode(data, defaults, nil)
	}
	return &unread{data: bytes.Clone(data), glance: g}, &schema.GroupVersionKind{Kind: g.kind}, nil
}
