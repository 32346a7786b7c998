package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Repositories are the repositories from which the hub may fetch charts.
type Repositories struct {
	prefixes []string
	// hosts are the hosts of the allowed repositories. Some registries redirect requests to another host. An administrator
	// must then also allow a repository of that host.
	hosts []string
}

var errForm = errors.New("must be oci://HOST/PATH or https://HOST/PATH")

// ParseRepositories reads prefixes of repositories, such as oci://registry.example.com/charts or
// https://charts.example.com.
func ParseRepositories(prefixes []string) (Repositories, error) {
	var out Repositories
	for _, text := range prefixes {
		u, err := parse(text)
		if err != nil {
			return Repositories{}, fmt.Errorf("reading the repository %q: %w", text, err)
		}
		out.prefixes = append(out.prefixes, u.String())
		out.hosts = append(out.hosts, u.Host)
	}
	return out, nil
}

// parse returns the URL of a repository in a normal form, so that URLs can be compared.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimRight(u.EscapedPath(), "/")
	if u.Scheme != schemeOCI && u.Scheme != schemeHTTPS || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		folder != "" && path.Clean(folder) != folder || strings.Contains(folder, "%") {
		return nil, errForm
	}
	return &url.URL{Scheme: u.Scheme, Host: hostOf(u), Path: folder}, nil
}

// hostOf returns the host of a URL in lower case, with its port unless the port is 443.
func hostOf(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Host), ":443") }

// allow reports whether one of the prefixes allows the chart with this name in the repository u.
func (r Repositories) allow(u *url.URL, name string) bool {
	full := u.String()
	if u.Scheme == schemeOCI {
		full += "/" + name
	}
	return slices.ContainsFunc(r.prefixes, func(prefix string) bool {
		return full == prefix || strings.HasPrefix(full, prefix+"/")
	})
}

// allowHost reports whether the host of a URL is the host of an allowed repository.
func (r Repositories) allowHost(u *url.URL) bool { return slices.Contains(r.hosts, hostOf(u)) }
