package console

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	members "github.com/hanse-dev/hanse/member"
)

// The picture of an object has four columns: the hub, regions, clusters, and the objects that controllers on the
// clusters made. A leaf is a line of the picture.
const (
	maxLeaves    = 40
	maxPictured  = 24 // clusters that have a box of their own
	foldClusters = 12 // with more clusters, those that are well are folded by region
	maxOwned     = 4  // objects on one cluster that have a box of their own
	leafHeight   = 32
	firstLeaf    = 48
	letterWidth  = 7.25 // of the font of the picture, which has one width
)

var (
	columnsAt   = []int{0, 240, 440, 664}
	columnWidth = []int{190, 150, 174, 300}
)

// pictured is a cluster of the picture.
type pictured struct {
	Region, Cluster string
	State           state
	Ready           string // such as "2/3"
	// Says is a short text about a cluster that does not answer.
	Says string
	Path string
	// Owned are the objects that controllers made for the copy. Asked is false if the member was not asked, and AskPath is
	// then the path of the page that asks it. Refused says why the member's answer is missing.
	Owned   []members.Child
	Asked   bool
	AskPath string
	Refused string
}

// picture is a tree of boxes. It is a function of the page's data alone.
type picture struct {
	Width, Height int
	Boxes         []pictureBox
	Edges         []pictureEdge
	Paths         []picturePath
	// Owned is true if the picture has objects that controllers made, or a reason why they are missing.
	Owned bool
}

// pictureBox is a box with a sign and a text. X and Y are its upper left corner.
type pictureBox struct {
	Class, Title, Text, Right, Path string
	X, Y, W                         int
	Says                            string
	SaysX, RightX                   int
	Root                            bool
}

// pictureEdge is a line from the right side of a box to the left side of another.
type pictureEdge struct{ Class, D string }

// picturePath is the same path as a line of a list, for narrow screens.
type picturePath struct{ Class, At, Path, Name, Says string }

// node is a part of the tree, before it has a place.
type node struct {
	pictureBox
	below []*node
	// folded is the number of clusters for which the box stands. It is 0 for other boxes.
	folded int
	at     int // the middle, in pixels from the top
}

// pictureOf draws the tree from the object to its clusters. name is the text of the object.
func pictureOf(name string, worst state, right string, clusters []pictured) picture {
	root := &node{pictureBox: pictureBox{Class: worst.Class, Title: name + ": " + worst.Word, Text: name, Right: right, Root: true}}
	leaves := 0
	var paths []picturePath
	for _, region := range regionsOf(clusters) {
		if leaves >= maxLeaves-1 {
			break
		}
		root.below = append(root.below, regionNode(region, len(clusters), &leaves, &paths))
	}
	var shown int
	for _, r := range root.below {
		for _, c := range r.below {
			shown += max(c.folded, 1)
		}
	}
	if more := len(clusters) - shown; more > 0 {
		root.below = append(root.below, &node{pictureBox: pictureBox{Class: "off", Title: fmt.Sprintf("%d more clusters: see the table", more), Text: fmt.Sprintf("%d more clusters", more)}})
	}
	p := picture{Width: columnsAt[3] + columnWidth[3] + 366, Paths: paths}
	line := 0
	root.place(0, &line)
	p.Height = firstLeaf + line*leafHeight
	p.draw(root)
	slices.SortStableFunc(p.Edges, func(a, b pictureEdge) int {
		return cmp.Compare(slices.Index(signs, b.Class), slices.Index(signs, a.Class))
	})
	return p
}

// regionsOf groups clusters by region: the worst region first, and in it the worst cluster.
func regionsOf(clusters []pictured) [][]pictured {
	rank := func(c pictured) int { return slices.Index(signs, c.State.Class) }
	worst := map[string]int{}
	for _, c := range clusters {
		if of, known := worst[c.Region]; !known || rank(c) < of {
			worst[c.Region] = rank(c)
		}
	}
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b pictured) int {
		return cmp.Or(cmp.Compare(worst[a.Region], worst[b.Region]), cmp.Compare(a.Region, b.Region), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Cluster, b.Cluster))
	})
	var out [][]pictured
	for i, c := range sorted {
		if i == 0 || sorted[i-1].Region != c.Region {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// regionNode returns the tree of a region. all is the number of clusters of the picture. It counts the leaves.
func regionNode(clusters []pictured, all int, leaves *int, paths *[]picturePath) *node {
	name := cmp.Or(clusters[0].Region, "without a region")
	n := &node{pictureBox: pictureBox{Class: clusters[0].State.Class, Title: name + ": " + clusters[0].State.Word, Text: name}}
	for i, c := range clusters {
		folds := all > foldClusters && c.State.Class == "ok" && len(clusters)-i > 1
		if folds || *leaves >= min(maxPictured, maxLeaves-2) && len(clusters)-i > 1 {
			*leaves++
			text := fmt.Sprintf("%d more clusters", len(clusters)-i)
			if i == 0 {
				text = fmt.Sprintf("%d clusters", len(clusters))
			}
			n.below = append(n.below, &node{folded: len(clusters) - i, pictureBox: pictureBox{Class: c.State.Class, Title: text + ": " + c.State.Word, Text: text}})
			break
		}
		n.below = append(n.below, clusterNode(c, leaves, paths))
	}
	return n
}

// clusterNode returns the tree of a cluster.
func clusterNode(c pictured, leaves *int, paths *[]picturePath) *node {
	n := &node{pictureBox: pictureBox{Class: c.State.Class, Title: c.Cluster + ": " + c.State.Word, Text: c.Cluster, Right: c.Ready, Path: c.Path, Says: c.Says}}
	at := picturePath{Class: c.State.Class, At: cmp.Or(c.Region, "without a region") + " / " + c.Cluster, Path: c.Path, Says: c.State.Word}
	switch {
	case c.Refused != "":
		n.below = []*node{{pictureBox: pictureBox{Class: "off", Title: c.Refused, Text: "not shown", Says: c.Refused}}}
	case c.Asked:
		n.below = owned(c.Owned, c.Path)
	case c.AskPath != "":
		n.below = []*node{{pictureBox: pictureBox{Class: "todo", Title: "ask " + c.Cluster + " for the objects", Text: "ask for the objects", Path: c.AskPath}}}
	}
	*leaves += max(len(n.below), 1)
	listed := false
	for _, b := range n.below {
		if slices.Index(signs, b.Class) < slices.Index(signs, "todo") {
			line := at
			line.Class, line.Name, line.Says = b.Class, b.Text, b.Says
			*paths, listed = append(*paths, line), true
		}
	}
	if c.State.Class != "ok" && !listed {
		if c.Says != "" {
			at.Says += ": " + c.Says
		}
		*paths = append(*paths, at)
	}
	return n
}

// owned returns the boxes of the objects on a cluster: those that are not healthy, and one for all others.
func owned(children []members.Child, path string) []*node {
	var out []*node
	healthy := 0
	var visit func([]members.Child)
	visit = func(all []members.Child) {
		for _, c := range all {
			of := childState(c)
			if of.Class == "ok" || len(out) >= maxOwned {
				healthy++
			} else {
				name := c.Kind + " " + c.Name
				out = append(out, &node{pictureBox: pictureBox{Class: of.Class, Title: name + ": " + of.Word, Text: name, Says: c.State, Path: path}})
			}
			visit(c.Children)
		}
	}
	visit(children)
	slices.SortStableFunc(out, func(a, b *node) int { return cmp.Compare(slices.Index(signs, a.Class), slices.Index(signs, b.Class)) })
	if healthy > 0 {
		text := fmt.Sprintf("%d %s", healthy, plural(healthy, "object", "objects"))
		if len(out) > 0 {
			text = fmt.Sprintf("%d more %s", healthy, plural(healthy, "object", "objects"))
		}
		out = append(out, &node{pictureBox: pictureBox{Class: "ok", Title: text, Text: text, Path: path}})
	}
	return out
}

// childState returns the display of an object that a controller made. A pod has no health, and is shown as progressing
// only if its parent is not healthy, so that it counts as well here.
func childState(c members.Child) state {
	if c.Health == "" {
		return state{"ok", cmp.Or(c.State, "there")}
	}
	if c.Health == hubv1.HealthUnknown {
		return state{"off", "unknown"}
	}
	return healthState(c.Health)
}

// place gives each leaf a line, and each parent the middle of its children.
func (n *node) place(depth int, line *int) {
	n.X, n.W = columnsAt[depth], columnWidth[depth]
	if len(n.below) == 0 {
		n.at = firstLeaf + *line*leafHeight
		*line++
	}
	for _, b := range n.below {
		b.place(depth+1, line)
	}
	if len(n.below) > 0 {
		n.at = (n.below[0].at + n.below[len(n.below)-1].at) / 2
	}
	n.Y, n.SaysX, n.RightX = n.at-13, n.X+n.W+12, n.X+n.W-10
	letters := (float64(n.W) - 38) / letterWidth
	if n.Right != "" {
		letters -= float64(utf8.RuneCountInString(n.Right) + 1)
	}
	n.Text = cutTo(n.Text, int(letters))
	n.Says = cutTo(n.Says, 58)
}

// cutTo cuts a text to a number of characters.
func cutTo(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters || letters < 2 {
		return text
	}
	return string(runes[:letters-1]) + "…"
}

// draw adds the boxes and edges of a tree to the picture.
func (p *picture) draw(n *node) {
	p.Boxes = append(p.Boxes, n.pictureBox)
	for _, b := range n.below {
		from, to := n.X+n.W, b.X
		p.Owned = p.Owned || b.X == columnsAt[3]
		middle := (from + to) / 2
		p.Edges = append(p.Edges, pictureEdge{b.Class, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from, n.at, middle, n.at, middle, b.at, to, b.at)})
		p.draw(b)
	}
}

// TextX returns the left side of the text.
func (b pictureBox) TextX() int { return b.X + 30 }

// TextY returns the base line of the texts.
func (b pictureBox) TextY() int { return b.Y + 17 }

// SignX returns the left side of the sign.
func (b pictureBox) SignX() int { return b.X + 4 }

// SignY returns the upper side of the sign.
func (b pictureBox) SignY() int { return b.Y + 4 }
