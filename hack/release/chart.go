package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const (
	hubChart        = "hanse-hub"
	memberChart     = "hanse-member"
	systemNamespace = "hanse-system"
)

var charts = []string{hubChart, memberChart}

// packageChart packages a chart into a folder with the version of the release, and returns the path. The version of the
// application is the tag of the images, which the charts use by default.
func (r *release) packageChart(ctx context.Context, name, folder string, when time.Time) (string, error) {
	_, err := r.command(ctx, nil, r.helm, "package", filepath.Join("charts", name),
		"--version", r.version.Plain(), "--app-version", r.version.Plain(), "--destination", folder)
	if err != nil {
		return "", fmt.Errorf("packaging chart %s: %w", name, err)
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%s.tgz", name, r.version.Plain()))
	// helm keeps the times of the files in the tree, which are those of a checkout.
	files, err := readTar(path)
	if err != nil {
		return "", err
	}
	if err := writeArchive(path, files, when); err != nil {
		return "", err
	}
	return path, nil
}

// renderHub returns what the packaged chart of the hub renders with its default values.
func (r *release) renderHub(ctx context.Context, chart string) (string, error) {
	rendered, err := r.command(ctx, nil, r.helm, "template", "hanse", chart, "--namespace", systemNamespace)
	if err != nil {
		return "", fmt.Errorf("rendering chart %s: %w", chart, err)
	}
	return rendered, nil
}
