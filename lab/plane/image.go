package plane

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/hanse-dev/hanse/hack/image"
)

const imageRegistry = "hanse.dev/"

// Image returns the name of the lab's image of a program that has only one version.
func Image(program string) string { return imageRegistry + program + ":lab" }

// OperatorImage returns the name of the lab's image of an operator at a version.
func OperatorImage(operator, version string) string { return imageRegistry + operator + ":" + version }

// ChartImage returns the name of the lab's image for one that a chart of an operator's author names. The argument is
// that name without the registry.
func ChartImage(name string) string { return imageRegistry + name }

// WriteImage writes an image archive with this image name, which contains only the program.
func WriteImage(archive, name, program string) error {
	_, err := image.Write(archive, image.Spec{
		Reference:  name,
		Binaries:   []image.Binary{{OS: "linux", Arch: runtime.GOARCH, Path: program}},
		Entrypoint: "/" + filepath.Base(program),
		Created:    time.Unix(0, 0),
	})
	return err
}
