package pki

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// WriteKubeconfig writes a kubeconfig for one server. The certificates and the key are inline, because Hanse refuses a
// member's kubeconfig that names other files.
func WriteKubeconfig(file, name, server string, ca *CA, client Cert) error {
	cert, err := os.ReadFile(client.CertFile)
	if err != nil {
		return fmt.Errorf("writing kubeconfig of %q: %w", name, err)
	}
	key, err := os.ReadFile(client.KeyFile)
	if err != nil {
		return fmt.Errorf("writing kubeconfig of %q: %w", name, err)
	}
	return writeKubeconfig(file, name, server, ca, map[string]any{"client-certificate-data": cert, "client-key-data": key})
}

// WriteTokenKubeconfig writes a kubeconfig for one server. It names a file with a bearer token.
func WriteTokenKubeconfig(file, name, server string, ca *CA, tokenFile string) error {
	return writeKubeconfig(file, name, server, ca, map[string]any{"tokenFile": tokenFile})
}

func writeKubeconfig(file, name, server string, ca *CA, user map[string]any) error {
	type named map[string]any
	data, err := yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []named{{"name": name, "cluster": map[string]any{"server": server, "certificate-authority-data": ca.PEM}}},
		"users":           []named{{"name": name, "user": user}},
		"contexts":        []named{{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	})
	if err != nil {
		return fmt.Errorf("writing kubeconfig of %q: %w", name, err)
	}
	return os.WriteFile(file, data, 0o600)
}
