// Command doccheck checks all Markdown files below a folder. Relative links lead to a file and a heading that exist,
// and lines are at most 120 columns wide. Links to the network are left alone, so that the check is the same
// everywhere.
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
