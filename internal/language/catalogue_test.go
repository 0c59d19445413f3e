package language

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// asks are the functions that take a text of ours, by name, with the place of the text among their arguments. Methods of
// other packages that pass it on (t, tf, count, form of a renderer) are among them.
var asks = map[string]int{"T": 0, "Tf": 0, "Count": 2, "t": 0, "tf": 0, "count": 2, "form": 0, "doubt": 0}

// texts finds each text that the sources ask for, and where. A text that isn't a constant is an error.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..")
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || !speaks(name) {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			consts := constants(t, filepath.Dir(name))
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				at, ok := asks[sel.Sel.Name]
				if !ok || at < 0 || len(call.Args) <= at || own(name) {
					return true
				}
				where := set.Position(call.Pos()).String()
				text, ok := literal(call.Args[at], consts)
				if !ok {
					if !passesOn(name, call.Args[at]) {
						t.Errorf("%s: the text has to be a constant, so that it can be found", where)
					}
					return true
				}
				found[text] = where
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// own: this package passes texts on.
func own(file string) bool { return strings.Contains(filepath.ToSlash(file), "internal/language/") }

// speaks: the local Slack is a tool for developers, and stands alone.
func speaks(file string) bool { return !strings.Contains(filepath.ToSlash(file), "internal/devslack/") }

// passesOn: a helper that hands its parameter on is found where it is called, by its own name in asks. It has to call the
// parameter "english".
func passesOn(_ string, arg ast.Expr) bool {
	id, ok := arg.(*ast.Ident)
	return ok && (id.Name == "english" || id.Name == "many")
}

// constants are the texts that a package's constants stand for.
func constants(t *testing.T, dir string) map[string]string {
	t.Helper()
	if known, ok := packages[dir]; ok {
		return known
	}
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				collect(g, out)
			}
		}
	}
	packages[dir] = out
	return out
}

var packages = map[string]map[string]string{}

func collect(g *ast.GenDecl, out map[string]string) {
	for _, s := range g.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range v.Names {
			if i < len(v.Values) {
				if text, ok := literal(v.Values[i], nil); ok {
					out[name.Name] = text
				}
			}
		}
	}
}

func literal(e ast.Expr, consts map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		x, ok1 := literal(e.X, consts)
		y, ok2 := literal(e.Y, consts)
		return x + y, ok1 && ok2 && e.Op == token.ADD
	case *ast.Ident:
		s, ok := consts[e.Name]
		return s, ok
	}
	return "", false
}

// TestComplete: what is asked for is in every language, what is in one is asked for, and the placeholders are the same.
func TestComplete(t *testing.T) {
	found := texts(t)
	for text, where := range found {
		if _, ok := chinese[text]; !ok && hasWords(text) {
			t.Errorf("%s: %q has no Chinese", where, text)
		}
	}
	for text, zh := range chinese {
		if _, ok := found[text]; !ok && !slices.Contains(recorded, text) && zhRefusals[text] == "" {
			t.Errorf("nobody asks for %q", text)
		}
		if a, b := placeholders(text), placeholders(zh); !slices.Equal(a, b) {
			t.Errorf("%q has the placeholders %v, its Chinese %q has %v", text, a, zh, b)
		}
		if strings.Count(text, "*")%2 != 0 || strings.Count(zh, "*")%2 != 0 {
			t.Errorf("%q or %q: a star without its other", text, zh)
		}
	}
}

// A text that several parts of the product have reads the same in each: only one of them counts, and a button is to be
// called what the sentences call it.
func TestOneTranslation(t *testing.T) {
	seen := map[string]string{}
	for _, part := range parts {
		for text, zh := range part {
			if before, ok := seen[text]; ok && before != zh {
				t.Errorf("%q is both %q and %q", text, before, zh)
			}
			seen[text] = zh
		}
	}
}

// What is spoken of everywhere has one name.
func TestOneNameForEach(t *testing.T) {
	for text, zh := range chinese {
		for other, name := range map[string]string{"您": "你", "助手": "智能体", "代理": "智能体", "会话": "对话", "严重风险": "极高风险", "本次运行": "本次任务", "无人答复": "无人回应"} {
			if strings.Contains(zh, other) {
				t.Errorf("%q says %s where the other texts say %s: %q", text, other, name, zh)
			}
		}
	}
}

var placeholder = regexp.MustCompile(`\{[a-z_]*\}|%(?:\[(\d+)\])?[-+# 0-9.]*[a-zA-Z%]`)

// placeholders are the slots and verbs of a text, sorted; a verb without an index has the place where it stands.
func placeholders(text string) []string {
	var out []string
	n := 0
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		switch {
		case m[0][0] == '{', m[0] == "%%":
			out = append(out, m[0])
		case m[1] != "":
			out = append(out, m[1]+m[0][len(m[0])-1:])
		default:
			n++
			out = append(out, strconv.Itoa(n)+m[0][len(m[0])-1:])
		}
	}
	slices.Sort(out)
	return out
}

func hasWords(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'z' }) >= 0
}

func TestParse(t *testing.T) {
	for name, want := range map[string]Language{"": English, "en": English, "EN-gb": English, "zh": Chinese, "zh-CN": Chinese, "zh_Hans": Chinese} {
		if got, err := Parse(name); err != nil || got != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if _, err := Parse("tlh"); err == nil {
		t.Error("a language that nobody speaks here is taken")
	}
}

func TestSplit(t *testing.T) {
	got := Split("Denied by {who}. *Not performed.* {")
	want := []Piece{{Text: "Denied by "}, {Slot: "who"}, {Text: ". "}, {Text: "Not performed.", Strong: true}, {Text: " "}, {Text: "{"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
