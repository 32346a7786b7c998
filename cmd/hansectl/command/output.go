package command

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// shown is what a command has found out.
type shown interface {
	Write(w io.Writer, now time.Time)
}

// shownWide is what has more to say than fits a narrow screen.
type shownWide interface {
	WriteWide(w io.Writer, now time.Time)
}

// output is the flag -o.
type output struct{ format string }

func (o *output) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format: json or yaml. Text if it is not given.")
}

// addWideTo is for commands whose result is shownWide.
func (o *output) addWideTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format: wide, json or yaml. Text if it is not given.")
}

func (o *output) check(cmd *cobra.Command) error {
	switch o.format {
	case "", "json", "yaml":
		return nil
	}
	return usageError(cmd, fmt.Errorf("--output %q: %w", o.format, errOutput))
}

func (o *output) checkWide(cmd *cobra.Command) error {
	switch o.format {
	case "", "wide", "json", "yaml":
		return nil
	}
	return usageError(cmd, fmt.Errorf("--output %q: %w", o.format, errOutputWide))
}

func (o *output) print(w io.Writer, what shown) error {
	switch o.format {
	case "json":
		text, err := json.MarshalIndent(what, "", "  ")
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		_, err = fmt.Fprintln(w, string(text))
		return err
	case "yaml":
		text, err := yaml.Marshal(what)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = w.Write(text)
		return err
	case "wide":
		what.(shownWide).WriteWide(w, time.Now())
		return nil
	}
	what.Write(w, time.Now())
	return nil
}
