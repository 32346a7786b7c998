package informer

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

// NewClient returns a dynamic client that returns the same objects as client-go's dynamic client, but parses each
// object and each list only once. client-go scans the JSON of an object about ten times, which costs more than all
// other work on the object. Watches of this client deliver undecoded objects, and are for this package only.
func NewClient(cfg *rest.Config) (dynamic.Interface, error) {
	c, err := NewRESTClient(cfg)
	if err != nil {
		return nil, err
	}
	return dynamic.New(c), nil
}

// NewRESTClient returns the REST client that NewClient wraps. Unlike the dynamic client, the REST client also returns
// the response to a deletion.
func NewRESTClient(cfg *rest.Config) (rest.Interface, error) {
	config := dynamic.ConfigFor(cfg)
	config.NegotiatedSerializer = negotiated{config.NegotiatedSerializer}
	config.APIPath = "/unused" // every request sets its full path
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// negotiated decodes JSON with the decoders of this package, and all other data with the wrapped serializer.
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

// objects decodes single objects and lists. It passes a Status and invalid data to the wrapped serializer.
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

// elements returns the items of a list as objects. It returns false if an item is not an object. The API server omits
// apiVersion and kind from the items of built-in kinds, so elements sets these fields.
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

// unread decodes only the identity of the object in a watch event. data is valid only until the next event, so the
// returned object has a copy of data.
func (s objects) unread(data []byte, defaults *schema.GroupVersionKind) (runtime.Object, *schema.GroupVersionKind, error) {
	g, ok := look(data)
	if !ok || g.kind == "Status" {
		return s.Serializer.Decode(data, defaults, nil)
	}
	return &unread{data: bytes.Clone(data), glance: g}, &schema.GroupVersionKind{Kind: g.kind}, nil
}
