// Package charts contains the definitions that the hub's chart installs, and the files of the chart hanse-member, which
// hansectl join renders.
package charts

import "embed"

// Definitions are the CustomResourceDefinitions of hanse.dev, one a file.
//
//go:embed hanse-hub/files/crds/*.yaml
var Definitions embed.FS
