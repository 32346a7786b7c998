// Command linkcheck checks the relative links of all Markdown files below a folder: that the file is there, and that the
// heading is there which an anchor names. Links to the network are left alone, so that the check is the same everywhere.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: linkcheck FOLDER")
		os.Exit(2)
	}
	broken, err := Check(os.DirFS(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, b := range broken {
		fmt.Fprintln(os.Stderr, b)
	}
	if len(broken) > 0 {
		os.Exit(1)
	}
}
