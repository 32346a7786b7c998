// Command monitoring writes the dashboards of the chart hanse-hub for Grafana. Its tests compare the dashboards and the
// rules of the chart with the metrics of the hub and with the runbook, and run promtool.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// write writes each dashboard into a file with its name.
func write(dir string) error {
	for name, builder := range dashboards() {
		built, err := builder.Build()
		if err != nil {
			return fmt.Errorf("building the dashboard %s: %w", name, err)
		}
		text, err := encode(built)
		if err != nil {
			return fmt.Errorf("encoding the dashboard %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the JSON of a dashboard. It does not escape < and >, so that comparisons in queries stay readable.
func encode(d dashboard.Dashboard) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return out.Bytes(), err
}
