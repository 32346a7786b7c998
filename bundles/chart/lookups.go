package chart

import (
	"fmt"
	"path"
	"slices"
	"text/template/parse"

	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// lookups returns the sorted paths of the templates that call the function lookup. The text of NOTES.txt is in no
// object, but templates that this file defines may be.
func lookups(c *helmchart.Chart) ([]string, error) {
	var out []string
	for _, t := range c.Templates {
		name := path.Join(c.ChartFullPath(), t.Name)
		trees := map[string]*parse.Tree{}
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(string(t.Data), "", "", trees); err != nil {
			return nil, fmt.Errorf("reading template %s: %s", name, oneLine(err))
		}
		for _, tree := range trees { // the template itself, and the templates that it defines
			isNotes := tree.Name == name && path.Base(name) == "NOTES.txt"
			if !isNotes && calls(tree.Root, "lookup") {
				out = append(out, name)
				break
			}
		}
	}
	for _, sub := range c.Dependencies() {
		names, err := lookups(sub)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return out, nil
}

// calls reports whether this part of a template calls the function with this name.
func calls(node parse.Node, function string) bool {
	any := func(nodes ...parse.Node) bool {
		return slices.ContainsFunc(nodes, func(n parse.Node) bool { return calls(n, function) })
	}
	branch := func(b *parse.BranchNode) bool {
		return any(b.Pipe, b.List) || b.ElseList != nil && any(b.ElseList)
	}
	switch n := node.(type) {
	case *parse.ListNode:
		return any(n.Nodes...)
	case *parse.ActionNode:
		return any(n.Pipe)
	case *parse.IfNode:
		return branch(&n.BranchNode)
	case *parse.RangeNode:
		return branch(&n.BranchNode)
	case *parse.WithNode:
		return branch(&n.BranchNode)
	case *parse.TemplateNode:
		return n.Pipe != nil && any(n.Pipe)
	case *parse.PipeNode:
		return slices.ContainsFunc(n.Cmds, func(c *parse.CommandNode) bool { return any(c.Args...) })
	case *parse.ChainNode:
		return any(n.Node)
	case *parse.IdentifierNode:
		return n.Ident == function
	}
	return false
}
