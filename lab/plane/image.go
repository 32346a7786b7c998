package plane

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/hanse-dev/hanse/hack/image"
)

const imageRegistry = "hanse.dev/"

// Image returns the name of the image that the lab makes of a program with one version.
func Image(program string) string { return imageRegistry + program + ":lab" }

// OperatorImage returns the name of the image that the lab makes of an operator.
func OperatorImage(operator, version string) string { return imageRegistry + operator + ":" + version }

// WriteImage writes the image with this name, of a program, to an archive.
func WriteImage(archive, name, program string) error {
	_, err := image.Write(archive, image.Spec{
		Reference:  name,
		Binaries:   []image.Binary{{OS: "linux", Arch: runtime.GOARCH, Path: program}},
		Entrypoint: "/" + filepath.Base(program),
		Created:    time.Unix(0, 0),
	})
	return err
}
