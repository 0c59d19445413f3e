package language

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recorded are sentences of the journal that [Language.Recorded] translates: nobody asks for them as a constant. The
// patterns are among them.
var recorded = slices.Concat(patterns, acts, []string{
	"1 hour", "1 minute", "1 second",
	"nobody answered in time", "it could not be shown to anyone in time", "the request could not be shown to anyone",
	"the run ended", "it was stopped", "it was aborted", "approvalbot was stopped", "the journal could not be written",
	"approvalbot restarted before anyone answered", "approvalbot restarted before this call could start", "approvalbot restarted while this was running",
	"there is nowhere to ask", "it stands in no channel", "the channel is archived", "nobody else is in this conversation",
	"none of those who are listed could approve it",
	"members of a public channel count only if the operator lists it in APPROVALBOT_CHANNELS",
	"whoever asked can't approve it unless the operator lists requester among those who may (APPROVALBOT_APPROVERS, or the rule that asks)",
	"APPROVALBOT_APPROVERS lists nobody",
	"a guest", "a bot", "of another organization", "deactivated", "of a kind that isn't known",
	"can change things and reach beyond the workspace", "can change things", "reaches beyond the workspace", "that is how it was defined",
	"What would run is not what was approved", "What was approved is not in the journal", "It could not be found out whether it still is",
	"approvalbot restarted before it was done", "I don't take requests in this channel.",
	"I can't find out whether you may start runs, so I don't. Please try again in a moment.",
	"You asked for this, so somebody else has to approve it. You can deny it",
	"Who has to approve this now can't be read, so it counts as not approved",
	"The app may not read files: it lacks the scope files:read", "Slack has no such file any more",
	"The file is kept by another service, not by Slack", "What Slack sent is not the file: it has another size",
	"The file could not be downloaded", "Files can't be taken here", "It took too long", "It could not be written to the workspace",
	"it can't be taken back",                                                                                                            // tools.Demands.Why, as a policy says it
	"it is too long to be taken apart", "it isn't valid UTF-8", "it contains a character that can't be seen", "it is nested too deeply", // a command
})

// composed are recorded sentences that the sources put together from parts.
var composed = []string{
	"approvalbot restarted before it was done",
	"%s hours", "%s minutes", "%s seconds", "1 hour", "1 minute", "1 second",
	"%s is %s, and only full members count (%s)", "%s is %s, and only full members count",
	"%s people have to approve, and only %s could: %s",
	"approvalbot restarted before anyone answered", "approvalbot restarted before this call could start", "approvalbot restarted while this was running",
	"%s %s, so it needs approval", "%s %s, and every call needs approval", "Every call needs approval, %s too", // without the setting's name
}

// TestRecordedIsWritten: each recorded sentence is one that the sources write. One that was changed there has to be changed
// here.
func TestRecordedIsWritten(t *testing.T) {
	written := wordsOf(t)
	for _, sentence := range recorded {
		if slices.Contains(composed, sentence) {
			continue
		}
		longest := ""
		for part := range strings.SplitSeq(sentence, "%s") {
			if len(part) > len(longest) {
				longest = part
			}
		}
		if !slices.ContainsFunc(written, func(s string) bool { return strings.Contains(s, longest) }) {
			t.Errorf("nobody writes %q any more", sentence)
		}
	}
}

// wordsOf are all string literals of those who write into the journal.
func wordsOf(t *testing.T) (words []string) {
	t.Helper()
	for _, dir := range []string{"approvals", "agent", "policy", "tools", "slackui", "../cmd/approvalbot"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						words = append(words, s)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return words
}

func TestRecorded(t *testing.T) {
	for english, want := range map[string]string{
		"":                                  "",
		"not on a Friday":                   "not on a Friday",
		"nobody answered within 1 minute":   "1 分钟内无人回应",
		"nobody answered within 90 seconds": "90 秒内无人回应",
		"the channel is archived.":          "频道已归档。",
		"shell can change things, so it needs approval.":                      "shell 可能会更改内容，因此需要批准。",
		`../x contains ".."; give the path from the top of the workspace.`:    `../x 中含有“..”：请给出从工作区顶层开始的路径。`,
		"The command ended with exit status 3.":                               "命令以退出状态 3 结束。",
		"The file has 20971521 bytes; 20971520 is the most that is taken.":    "文件有 20971521 字节，最多接收 20971520 字节。",
		"Guests can't approve this.":                                          "访客不能批准此请求。",
		"U1 is a guest, and only full members count (APPROVALBOT_APPROVERS)":  "U1 是访客，只有正式成员才算数（APPROVALBOT_APPROVERS）",
		"2 people have to approve, and only 1 could: the channel is archived": "需要 2 人批准，但只有 1 人可以：频道已归档",
	} {
		if got := Chinese.Recorded(english); got != want {
			t.Errorf("%q: %q, want %q", english, got, want)
		}
		if got := English.Recorded(english); got != english {
			t.Errorf("in English %q is %q", english, got)
		}
	}
	for _, sentence := range recorded {
		if chinese[sentence] == "" {
			t.Errorf("%q has no Chinese", sentence)
		}
	}
}

func FuzzRecorded(f *testing.F) {
	f.Add("shell can change things, so it needs approval.")
	f.Add("%s people have to approve, and only %s could: %s.")
	f.Add("...")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Chinese.Recorded(s); (got == "") != (s == "") || strings.Contains(got, "%!") && !strings.Contains(s, "%!") {
			t.Errorf("%q: %q", s, got)
		}
	})
}

// Every refusal is told in every language: whatever is refused, and whoever is.
func TestRefusalsAreTranslated(t *testing.T) {
	dir := filepath.Join("..", "approvals")
	consts, forms := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if id.Name == "act" && i < len(n.Values) {
						if s, ok := literal(n.Values[i], nil); ok {
							consts[s] = true
						}
					}
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "refuse" && len(n.Args) > 0 {
					if s, ok := literal(n.Args[0], nil); ok {
						forms[s] = true
					}
				}
			}
			return true
		})
	}
	if len(consts) < 5 || len(forms) < 15 {
		t.Fatalf("%d acts and %d refusals were found", len(consts), len(forms))
	}
	for act := range consts {
		if !slices.Contains(acts, act) || chinese[act] == "" {
			t.Errorf("%q has no Chinese", act)
		}
	}
	for form := range forms {
		if strings.HasPrefix(form, "It now takes ") {
			continue // it is what became of a call, and stands in its record only
		}
		for _, act := range acts {
			words := strings.NewReplacer("can %s", "can "+act, "can't %s", "can't "+act, "may %s", "may "+act, "%s", "U0X", "%d", "2").Replace(form)
			if got := Chinese.Recorded(words); got == words || strings.Contains(got, act) {
				t.Errorf("%q has no Chinese: %q", words, got)
			}
		}
	}
	for _, theirs := range []string{"Bots can't touch production.", "Nobody can tell what it does.", "Only people can press this"} {
		if got := Chinese.Recorded(theirs); got != theirs {
			t.Errorf("the words of a rule, %q, became %q", theirs, got)
		}
	}
}
