// Command doccheck checks all Markdown files below a folder. Relative links must lead to an existing file and heading,
// and lines must have at most 120 columns. It does not check links to the network, so that the result does not depend
// on the network.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: doccheck FOLDER")
		os.Exit(2)
	}
	faults, err := Check(os.DirFS(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}
