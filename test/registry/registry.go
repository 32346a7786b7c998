// Package registry runs an OCI registry in the process of a test, and stores charts in it.
package registry

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// LayerType is the media type of the layer with the chart archive, as helm push sets it.
const LayerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// Handler returns the handler of an empty registry.
func Handler() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// Serve serves the handler over TLS until the test ends.
func Serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// CA returns the certificate of the server's CA, in PEM.
func CA(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Host returns the host and port of the server.
func Host(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "https://") }

// Push stores a chart archive as charts/NAME:TAG, in the form of helm push.
func Push(t *testing.T, s *httptest.Server, name, tag string, archive []byte) {
	t.Helper()
	layer := content.NewDescriptorFromBytes(LayerType, archive)
	if err := repository(t, s, name).Blobs().Push(t.Context(), layer, bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	PushManifest(t, s, name, tag, layer)
}

// PushManifest stores a manifest with this layer as charts/NAME:TAG.
func PushManifest(t *testing.T, s *httptest.Server, name, tag string, layer ocispec.Descriptor) {
	t.Helper()
	r := repository(t, s, name)
	config := content.NewDescriptorFromBytes("application/vnd.cncf.helm.config.v1+json", []byte("{}"))
	if err := r.Blobs().Push(t.Context(), config, strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{layer}}
	manifest.SchemaVersion = 2
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Manifests().PushReference(t.Context(), content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text), bytes.NewReader(text), tag)
	if err != nil {
		t.Fatal(err)
	}
}

func repository(t *testing.T, s *httptest.Server, name string) *remote.Repository {
	t.Helper()
	r, err := remote.NewRepository(Host(s) + "/charts/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r.Client = s.Client()
	return r
}
