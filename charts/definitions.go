// Package charts gives programs the definitions that the chart of the hub installs.
package charts

import "embed"

// Definitions are the CustomResourceDefinitions of hanse.dev, one a file.
//
//go:embed hanse-hub/files/crds/*.yaml
var Definitions embed.FS
