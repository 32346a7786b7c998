package child

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// parentArgument makes the test's executable act as a program that renders an endless chart.
const parentArgument = "parent"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case Argument:
			Main()
		case parentArgument:
			_, err := Render(context.Background(), input(endless))
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
