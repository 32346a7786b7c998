package overrides

import (
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// imageParts are the new parts of an image. If a part is empty, the image keeps its old part. A new tag or digest
// replaces both the old tag and the old digest.
type imageParts struct{ registry, repository, tag, digest string }

// imageChange replaces parts of the image at a path.
type imageChange struct {
	path  pointer
	parts *imageParts
	// optional is true if a missing image stays missing.
	optional bool
}

// compileImage compiles an override of images. It refuses parts that are not valid in an image name.
func compileImage(in *hubv1.ImageOverride) (containerChange, *fault) {
	c := containerChange{field: "image", withInit: true}
	parts := imageParts{in.Registry, in.Repository, in.Tag, in.Digest}
	if parts == (imageParts{}) {
		return c, &fault{message: "changes nothing: set registry, repository, tag or digest"}
	}
	if leaf, message := parts.malformed(); message != "" {
		return c, &fault{leaf: leaf, message: message}
	}
	c.lower = func(container any, at pointer) ([]action, *fault) {
		field := pointer{c.field}
		found, _, f := field.items(container)
		if f != nil {
			f.path = slices.Concat(at, field).String()
			return nil, f
		}
		var out []action
		for _, image := range found {
			out = append(out, &imageChange{path: slices.Concat(at, image), parts: &parts, optional: c.path.optional() || field.optional()})
		}
		return out, nil
	}
	f := c.setNames(in.Containers, in.Path)
	if f != nil || in.Path == "" {
		return c, f
	}
	path, message := parsePointer(in.Path)
	if message == "" {
		message = path.closedToWrites()
	}
	if message != "" {
		return c, &fault{leaf: "path", path: printable(in.Path), message: message}
	}
	c.path, c.field = path.parent(), path.last()
	if len(c.path) == 0 {
		c.path = pointer{}
	}
	return c, nil
}

// malformed returns the name of the first invalid part (leaf) and an error message. It tries each part in a sample
// image name. Both results are empty if all parts are valid.
func (p *imageParts) malformed() (leaf, message string) {
	if len(p.registry)+len(p.repository)+len(p.tag)+len(p.digest) > maxImageBytes {
		return "", "is longer than an image can be"
	}
	parses := func(text string) reference.Named {
		named, err := reference.ParseNormalizedNamed(text)
		if err != nil {
			return nil
		}
		return named
	}
	if p.registry != "" {
		if n := parses(p.registry + "/x"); n == nil || reference.Domain(n) != p.registry {
			return "registry", "is no registry: write a host with a dot or a port, such as registry.example.com:5000"
		}
	}
	if p.repository != "" {
		if n := parses("example.com/" + p.repository); n == nil || reference.Path(n) != p.repository {
			return "repository", "is no repository: write the path in the registry, in lower case and without a tag, such as prometheus/prometheus"
		}
	}
	if n := parses("x:" + p.tag); p.tag != "" && (n == nil || strings.Contains(p.tag, "@")) {
		return "tag", "is no tag: use at most 128 letters, digits, '_', '-' and '.'"
	}
	if p.digest != "" && parses("x@"+p.digest) == nil {
		return "digest", "is no digest, such as sha256: and 64 hexadecimal digits"
	}
	return "", ""
}

// whole reports whether the parts replace an image as a whole.
func (p *imageParts) whole() bool {
	return p.registry != "" && p.repository != "" && (p.tag != "" || p.digest != "")
}

func (p *imageParts) size() int {
	return len(p.registry) + len(p.repository) + len(p.tag) + len(p.digest) + 4
}

// image is the parsed name of an image.
type image struct {
	registry, repository string
	tag, digest          string
}

// parseImage splits the name of an image into its parts. The second result is an error message, or empty.
func parseImage(text string) (image, string) {
	const unreadable = "holds no image that can be read: set registry, repository and tag or digest in the rule, which replace it as a whole"
	if len(text) > maxImageBytes {
		return image{}, unreadable
	}
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return image{}, unreadable
	}
	var out image
	if tagged, ok := named.(reference.Tagged); ok {
		out.tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		out.digest = digested.Digest().String()
	}
	out.registry, out.repository = reference.Domain(named), reference.Path(named)
	name, _, _ := strings.Cut(text, "@")
	// A text without a registry means docker.io. The parser adds docker.io to the parsed name, but the result has only the
	// parts that the text has.
	if name = strings.TrimPrefix(name, "index."+dockerHub+"/"); !strings.HasPrefix(name, out.registry+"/") {
		out.registry, out.repository = "", strings.TrimSuffix(name, ":"+out.tag)
	}
	return out, ""
}

// String returns the name of the image as text.
func (i image) String() string {
	var b strings.Builder
	if i.registry != "" {
		b.WriteString(i.registry + "/")
	}
	b.WriteString(i.repository)
	if i.tag != "" {
		b.WriteString(":" + i.tag)
	}
	if i.digest != "" {
		b.WriteString("@" + i.digest)
	}
	return b.String()
}

const dockerHub = "docker.io"

// of returns the image name text with the new parts. The second result is an error message, or empty.
func (p *imageParts) of(text string) (string, string) {
	var i image
	if !p.whole() {
		var message string
		if i, message = parseImage(text); message != "" {
			return "", message
		}
	}
	if p.registry != "" {
		if i.registry == "" && !strings.Contains(i.repository, "/") {
			i.repository = "library/" + i.repository // official images of docker.io are in library/
		}
		i.registry = p.registry
	}
	if p.repository != "" {
		i.repository = p.repository
		if named, err := reference.ParseNormalizedNamed(p.repository); i.registry == "" && (err != nil || reference.Domain(named) != dockerHub) {
			i.registry = dockerHub // set it: otherwise the first step would be read as a registry
		}
	}
	if p.tag != "" || p.digest != "" {
		i.tag, i.digest = p.tag, p.digest
	}
	return i.String(), ""
}

func (i *imageChange) apply(doc map[string]any, _ *budget) *fault {
	v, ok := i.path.lookup(doc)
	text, isString := v.(string)
	if ok && !isString {
		return &fault{path: i.path.String(), message: "is not a string: correct the path to the image"}
	}
	switch {
	case !ok && i.optional:
		return nil
	case !ok && !i.parts.whole():
		return missing(i.path, "correct the path, or set registry, repository, and tag or digest, which create the field")
	}
	changed, message := i.parts.of(text)
	if message != "" {
		return &fault{path: i.path.String(), message: message}
	}
	if !ok {
		return edit(doc, i.path, adviceCreate, add(changed))
	}
	return edit(doc, i.path, adviceCreate, replace(changed))
}

func (i *imageChange) claim(c *claims, _ map[string]any) {
	value := map[string]any{}
	if i.parts.registry != "" {
		value["registry"] = i.parts.registry
	}
	if i.parts.repository != "" {
		value["repository"] = i.parts.repository
	}
	if i.parts.tag != "" || i.parts.digest != "" {
		value["version"] = i.parts.tag + "@" + i.parts.digest
	}
	n := c.root.at(i.path)
	for _, o := range n.claims {
		if o.kind == claimParts && o.rule.Policy == c.rule.Policy { // a policy's later rule wins, separately for each part
			before := maps.Clone(o.value.(map[string]any))
			maps.Copy(before, value)
			value = before
		}
	}
	n.add(claim{kind: claimParts, value: value, claimant: c.claimant})
}

func (i *imageChange) touches(path pointer) bool {
	return path.isAtOrBelow(i.path) || i.path.isAtOrBelow(path)
}
