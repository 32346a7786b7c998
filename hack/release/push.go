package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const pushedFile = "pushed.json"

// pushed describes an uploaded image or chart.
type pushed struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// push uploads the images and charts, and writes their names and digests to pushed.json.
func push(ctx context.Context, r *release) error {
	archives, err := r.archives()
	if err != nil {
		return err
	}
	var all []pushed
	for _, path := range archives {
		p, err := r.pushImage(ctx, path)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, chart := range charts {
		p, err := r.pushChart(ctx, chart)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encoding the digests: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.out, pushedFile), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the digests: %w", err)
	}
	return nil
}

// pushImage uploads the image or the index in an OCI archive without a change, so that its digest stays the same.
func (r *release) pushImage(ctx context.Context, path string) (pushed, error) {
	p := pushed{Name: r.registry + "/" + imageName(path)}
	ref, err := name.NewTag(p.Name + ":" + r.version.Plain())
	if err != nil {
		return pushed{}, fmt.Errorf("naming image %s: %w", path, err)
	}
	err = withImage(path, func(image openImage) error {
		p.Digest = image.entry.Digest.String()
		return upload(ctx, ref, image)
	})
	if err != nil {
		return pushed{}, fmt.Errorf("uploading image %s: %w", ref, err)
	}
	fmt.Printf("%s@%s\n", ref, p.Digest)
	return p, nil
}

func upload(ctx context.Context, ref name.Tag, image openImage) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if image.entry.MediaType.IsIndex() {
		index, err := image.index.ImageIndex(image.entry.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(ref, index, options...)
	}
	single, err := image.index.Image(image.entry.Digest)
	if err != nil {
		return err
	}
	return remote.Write(ref, single, options...)
}

var chartDigest = regexp.MustCompile(`(?m)^Digest: (sha256:[0-9a-f]{64})$`)

// pushChart uploads a packaged chart.
func (r *release) pushChart(ctx context.Context, chart string) (pushed, error) {
	path := filepath.Join(r.out, fmt.Sprintf("%s-%s.tgz", chart, r.version.Plain()))
	args := []string{"push", path, "oci://" + r.registry + "/charts"}
	if host, err := name.NewRegistry(strings.Split(r.registry, "/")[0]); err == nil && host.Scheme() == "http" {
		args = append(args, "--plain-http") // a registry on this machine, without TLS
	}
	out, err := r.command(ctx, nil, "sh", append([]string{"-c", `exec "$0" "$@" 2>&1`, r.helm}, args...)...)
	if err != nil {
		return pushed{}, fmt.Errorf("uploading chart %s: %w", chart, err)
	}
	match := chartDigest.FindStringSubmatch(out)
	if match == nil {
		return pushed{}, fmt.Errorf("uploading chart %s: helm printed no digest: %s", chart, out)
	}
	p := pushed{Name: r.registry + "/charts/" + chart, Digest: match[1]}
	fmt.Printf("%s:%s@%s\n", p.Name, r.version.Plain(), p.Digest)
	return p, nil
}
