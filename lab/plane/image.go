package plane

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/hanse-dev/hanse/hack/image"
)

// Image returns the name of the image that the lab makes of one of its programs.
func Image(program string) string { return "hanse.dev/" + program + ":lab" }

// WriteImage writes the image of a program, which is named like its binary, to an archive.
func WriteImage(archive, binary string) error {
	program := filepath.Base(binary)
	_, err := image.Write(archive, image.Spec{
		Reference:  Image(program),
		Binaries:   []image.Binary{{OS: "linux", Arch: runtime.GOARCH, Path: binary}},
		Entrypoint: "/" + program,
		Created:    time.Unix(0, 0),
	})
	return err
}
