package informer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestTheClientReadsWhatTheOneOfClientGoReads(t *testing.T) {
	theirs := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	jsonOf := func(s runtime.NegotiatedSerializer) runtime.SerializerInfo {
		info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
		if !ok {
			t.Fatal("there is no serializer for JSON")
		}
		return info
	}
	object := func() runtime.Object { return &unstructured.Unstructured{} }
	list := func() runtime.Object { return &unstructured.UnstructuredList{} }
	event := func() runtime.Object { return &metav1.WatchEvent{} }
	tests := map[string]struct {
		data string
		into func() runtime.Object // makes the object to decode into; nil: none
	}{
		"an object":                     {data: `{"apiVersion":"a/v1","kind":"K","metadata":{"name":"n"},"spec":{"i":1,"f":1.5,"e":1e3,"l":[{"a":null}]}}`, into: object},
		"an object of unknown kind":     {data: `{"apiVersion":"a/v1","kind":"K","spec":{"i":9007199254740993}}`},
		"an object of the core":         {data: `{"apiVersion":"v1","kind":"ConfigMap","data":{"Kind":"x"}}`},
		"an object with items in a map": {data: `{"apiVersion":"a/v1","kind":"K","items":{"a":1}}`},
		"a list":                        {data: `{"apiVersion":"a/v1","kind":"KList","metadata":{"continue":"c"},"items":[{"apiVersion":"a/v1","kind":"K"}]}`, into: list},
		"a list of a built-in kind":     {data: `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[{"metadata":{"name":"a"}},{"kind":"Own"},{}]}`, into: list},
		"a list of no objects":          {data: `{"apiVersion":"a/v1","kind":"KList","items":[{"kind":"K"},1]}`, into: list},
		"a list of null":                {data: `{"apiVersion":"a/v1","kind":"KList","items":[null]}`, into: list},
		"a list of one number":          {data: `{"apiVersion":"a/v1","kind":"KList","items":[{"a":9007199254740993,"b":1.5}]}`, into: list},
		"a list without items":          {data: `{"apiVersion":"a/v1","kind":"KList"}`, into: list},
		"a list with null for items":    {data: `{"apiVersion":"a/v1","kind":"KList","items":null}`, into: list},
		"a list with a map for items":   {data: `{"apiVersion":"a/v1","kind":"KList","items":{}}`, into: list},
		"an object in place of a list":  {data: `{"apiVersion":"a/v1","kind":"K","spec":{}}`, into: list},
		"a list in place of an object":  {data: `{"apiVersion":"a/v1","kind":"KList","items":[{"kind":"K"}]}`, into: object},
		"an error in place of a list":   {data: `{"apiVersion":"v1","kind":"Status","status":"Failure"}`, into: list},
		"a list of no kind":             {data: `{"apiVersion":"a/v1","items":[]}`, into: list},
		"half a list":                   {data: `{"apiVersion":"a/v1","kind":"KList","items":[{`, into: list},
		"an empty list":                 {data: `{"apiVersion":"a/v1","kind":"KList","items":[]}`, into: list},
		"an error":                      {data: `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`},
		"an error in place of an object": {
			data: `{"apiVersion":"v1","kind":"Status","status":"Failure"}`, into: object,
		},
		"a kind of somebody's own that is called Status": {data: `{"apiVersion":"a/v1","kind":"Status","status":{"a":1}}`},
		"no kind":            {data: `{"apiVersion":"a/v1"}`},
		"no version":         {data: `{"kind":"K"}`, into: object},
		"half an object":     {data: `{"apiVersion":"a/v1","kind":"K`, into: object},
		"no object":          {data: `[1]`, into: object},
		"an event":           {data: `{"type":"ADDED","object":{"apiVersion":"a/v1","kind":"K","a":"<&>\u00e4"}}`, into: event},
		"a broken event":     {data: `{"type":"ADDED","object":{`, into: event},
		"half an event":      {data: `{"type":"ADDED`, into: event},
		"a spaced event":     {data: `{ "type": "ADDED", "object": {"a":1} }`, into: event},
		"an odd event":       {data: `{"type":"A\u0044DED","object":{"a":1}}`, into: event},
		"an event of a list": {data: `{"type":"ADDED","object":[{}]}`, into: event},
		"an event of none":   {data: `{"type":"BOOKMARK"}`, into: event},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			decode := func(info runtime.SerializerInfo) (runtime.Object, string) {
				var into runtime.Object
				if tc.into != nil {
					into = tc.into()
				}
				decoder := runtime.Decoder(info.Serializer)
				if _, ok := into.(*metav1.WatchEvent); ok {
					decoder = info.StreamSerializer.Serializer
				}
				out, _, err := decoder.Decode([]byte(tc.data), nil, into)
				if u, ok := out.(*unread); ok {
					out, err = u.read()
				}
				if err != nil {
					return nil, err.Error()
				}
				return out, ""
			}
			want, wantErr := decode(jsonOf(theirs))
			got, gotErr := decode(jsonOf(negotiated{theirs}))
			if diff := cmp.Diff(want, got); diff != "" || wantErr != gotErr {
				t.Errorf("error %q, want %q, read (-want +got):\n%s", gotErr, wantErr, diff)
			}
		})
	}
}
