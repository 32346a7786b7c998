package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// sign signs the checksums and, by its digest, each image and chart in pushed.json. If an image has an SBOM, sign also
// attests the SBOM. cosign uses the identity of the workflow, so that there is no key.
func sign(ctx context.Context, r *release) error {
	data, err := os.ReadFile(filepath.Join(r.out, pushedFile))
	if err != nil {
		return fmt.Errorf("reading the digests: %w", err)
	}
	var all []pushed
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("decoding %s: %w", pushedFile, err)
	}
	if len(all) == 0 {
		return errors.New(pushedFile + " names nothing to sign")
	}
	for _, p := range all {
		if err := r.cosign(ctx, "sign", "--yes", p.Name+"@"+p.Digest); err != nil {
			return err
		}
		sbom := r.sbom(path.Base(p.Name))
		if _, err := os.Stat(sbom); err != nil || path.Dir(p.Name) != r.registry {
			continue // the bundle has no SBOM, and a chart has none even if an image has the same name
		}
		if err := r.cosign(ctx, "attest", "--yes", "--type", "spdxjson", "--predicate", sbom, p.Name+"@"+p.Digest); err != nil {
			return err
		}
	}
	sums := filepath.Join(r.out, sumsFile)
	return r.cosign(ctx, "sign-blob", "--yes", "--bundle", sums+".sigstore.json", sums)
}

func (r *release) cosign(ctx context.Context, args ...string) error {
	fmt.Println("cosign", args[0], args[len(args)-1])
	_, err := r.command(ctx, nil, "cosign", args...)
	return err
}
