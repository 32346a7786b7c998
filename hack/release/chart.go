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

// packageChart packages a chart with the version of the release, writes the package to a folder, and returns its path.
// The chart's appVersion is set to the tag of the images, which is the default tag in the charts.
func (r *release) packageChart(ctx context.Context, name, folder string, when time.Time) (string, error) {
	_, err := r.command(ctx, nil, r.helm, "package", filepath.Join("charts", name),
		"--version", r.version.Plain(), "--app-version", r.version.Plain(), "--destination", folder)
	if err != nil {
		return "", fmt.Errorf("packaging chart %s: %w", name, err)
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%s.tgz", name, r.version.Plain()))
	// helm keeps the times of the files in the checkout, so the archive is written again with the time of the commit.
	files, err := readTar(path)
	if err != nil {
		return "", err
	}
	if err := writeArchive(path, files, when); err != nil {
		return "", err
	}
	return path, nil
}

// renderHub returns the objects that helm renders from the packaged chart of the hub with its default values.
func (r *release) renderHub(ctx context.Context, chart string) (string, error) {
	rendered, err := r.command(ctx, nil, r.helm, "template", "hanse", chart, "--namespace", systemNamespace)
	if err != nil {
		return "", fmt.Errorf("rendering chart %s: %w", chart, err)
	}
	return rendered, nil
}
