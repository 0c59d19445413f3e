package tools

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/language"
)

// arguments returns v as canonical arguments of the tool.
func arguments(t testing.TB, tool Tool, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	args, err := ParseArguments(tool.Spec(), raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return args
}

type members map[string]any

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		tool Tool
		args members
		want Preview
	}{
		{&shell{}, members{"command": "printf ok > proof.txt"}, Preview{
			Summary: "Run printf ok > proof.txt", Target: "printf", Kind: KindCommand, Body: "printf ok > proof.txt",
			Notes: []string{"Runs: printf.", Unconfined},
		}},
		{&shell{}, members{"command": "\n true;rm -rf x\n", "timeout_seconds": 7}, Preview{
			Summary: "Run true;rm -rf x", Target: "true", Kind: KindCommand, Body: "\n true;rm -rf x\n",
			Notes: []string{"Time limit: 7 seconds.", "Runs: true, rm.", Unconfined},
		}},
		{&shell{}, members{"command": "cd x\nmake"}, Preview{
			Summary: "Run cd x …", Target: "cd", Kind: KindCommand, Body: "cd x\nmake",
			Notes: []string{"Runs: cd, make.", Unconfined},
		}},
		{&shell{}, members{"command": "x=1"}, Preview{
			Summary: "Run x=1", Target: "x=1", Kind: KindCommand, Body: "x=1",
			Notes: []string{"Runs no program.", Unconfined},
		}},
		{&shell{}, members{"command": "sudo $x"}, Preview{
			Summary: "Run sudo $x", Target: "sudo", Kind: KindCommand, Body: "sudo $x",
			Notes: []string{"Runs at least: sudo. It can't be told in full which programs this runs: the arguments of sudo don't say clearly what it runs.", Unconfined},
		}},
		{&shell{}, members{"command": "$x"}, Preview{
			Summary: "Run $x", Target: "$x", Kind: KindCommand, Body: "$x",
			Notes: []string{"It can't be told in full which programs this runs: the name of a program in it is known only when it runs.", Unconfined},
		}},
		{&shell{}, members{"command": "a;b;c;d;e;f;g;h;i;j;k;l;m;n"}, Preview{
			Summary: "Run a;b;c;d;e;f;g;h;i;j;k;l;m;n", Target: "a", Kind: KindCommand, Body: "a;b;c;d;e;f;g;h;i;j;k;l;m;n",
			Notes: []string{"Runs: a, b, c, d, e, f, g, h, i, j, k, l and 2 more.", Unconfined},
		}},
		{&writeFile{&workspace{}}, members{"path": "notes.txt", "content": "hello\nworld\n"}, Preview{
			Summary: "Write notes.txt (12 bytes)", Target: "notes.txt", Kind: KindDiff, Body: "+hello\n+world",
			Notes: []string{"Creates a new file with this content, or replaces what is there."},
		}},
		{&writeFile{&workspace{}}, members{"path": "notes.txt", "content": "x"}, Preview{
			Summary: "Write notes.txt (1 byte)", Target: "notes.txt", Kind: KindDiff, Body: "+x\n\\ No newline at end of file",
			Notes: []string{"Creates a new file with this content, or replaces what is there."},
		}},
		{&writeFile{&workspace{}}, members{"path": "notes.txt", "content": ""}, Preview{
			Summary: "Write notes.txt (0 bytes)", Target: "notes.txt", Kind: KindDiff,
			Notes: []string{"Creates an empty file, or deletes the content of what is there."},
		}},
		{&editFile{&workspace{}}, members{"path": "a/b.go", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree", "version": anyVersion}, Preview{
			Summary: "Edit a/b.go", Target: "a/b.go", Kind: KindDiff, Body: " one\n-two\n+2\n three",
			Notes: []string{"The text is replaced where it occurs, if it occurs exactly once.", "Only if the file is still as the agent knows it (version " + anyVersion + ")."},
		}},
		{&editFile{&workspace{}}, members{"path": "a", "old_string": "x\n", "new_string": "", "replace_all": true, "version": anyVersion}, Preview{
			Summary: "Edit a (every occurrence)", Target: "a", Kind: KindDiff, Body: "-x\n-",
			Notes: []string{"The text is replaced everywhere in the file.", "Only if the file is still as the agent knows it (version " + anyVersion + ")."},
		}},
		{&writeFile{&workspace{}}, members{"path": "n", "content": "x\n", "version": anyVersion}, Preview{
			Summary: "Write n (2 bytes)", Target: "n", Kind: KindDiff, Body: "+x",
			Notes: []string{"Replaces the whole file with this, in version " + anyVersion + " and no other."},
		}},
		{&writeFile{&workspace{}}, members{"path": "n", "content": "x\n", "version": "none"}, Preview{
			Summary: "Write n (2 bytes)", Target: "n", Kind: KindDiff, Body: "+x",
			Notes: []string{"Creates a new file with this content; if there is one of that name, nothing is done."},
		}},
		{&listFiles{&workspace{}}, members{"depth": 3}, Preview{Summary: "List the workspace and what is below it, 3 levels", Target: ".", Kind: KindJSON, Body: "{\n  \"depth\": 3\n}"}},
		{&readFile{&workspace{}}, members{"path": "a", "offset": 3}, Preview{Summary: "Read a", Target: "a", Kind: KindJSON, Body: "{\n  \"offset\": 3,\n  \"path\": \"a\"\n}"}},
		{&listFiles{&workspace{}}, members{}, Preview{Summary: "List the workspace", Target: ".", Kind: KindJSON, Body: "{}"}},
		{&listFiles{&workspace{}}, members{"path": "src", "recursive": true}, Preview{
			Summary: "List src and all below it", Target: "src", Kind: KindJSON, Body: "{\n  \"path\": \"src\",\n  \"recursive\": true\n}",
		}},
	} {
		got, err := tt.tool.Describe(arguments(t, tt.tool, tt.args))
		if err != nil {
			t.Errorf("%v: %v", tt.args, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.args, diff)
		}
	}
}

var versionShown = regexp.MustCompile(`sha256:[0-9a-f]{32}`)

// The preview is complete: the arguments can be read back from what is shown.
func TestPreviewIsComplete(t *testing.T) {
	// Few letters and many line breaks, so that lines are alike.
	text := rapid.OneOf(rapid.StringOf(rapid.SampledFrom([]rune("ab\n\n+-\\ \r\u202e"))), rapid.String(), rapid.Just(noNewline))
	path := rapid.SampledFrom([]string{"a", "dir/b.txt", "./c", "\u202ed", strings.Repeat("long/", 100) + "x"})
	version := rapid.SampledFrom([]string{"", absent, anyVersion, versionOf(nil)})
	check := func(name string, tool Tool, draw func(*rapid.T) members, read func(*rapid.T, Preview) members) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				args := arguments(t, tool, draw(rt))
				p, err := tool.Describe(args)
				if err != nil {
					return // refused, so nobody is shown anything
				}
				if strings.Contains(p.Summary, "\n") || utf8.RuneCountInString(p.Summary) > maxBrief+100 {
					rt.Fatalf("the summary is %q", p.Summary)
				}
				if back := arguments(t, tool, read(rt, p)); string(back) != string(args) {
					rt.Fatalf("%s\nshown as %+v\nreads as %s", args, p, back)
				}
			})
		})
	}
	check("shell", &shell{}, func(t *rapid.T) members {
		m := members{"command": "x" + text.Draw(t, "command")}
		if n := rapid.IntRange(0, 130).Draw(t, "timeout"); n > 0 {
			m["timeout_seconds"] = n
		}
		return m
	}, func(t *rapid.T, p Preview) members {
		m, seconds := members{"command": p.Body}, 0
		if strings.HasPrefix(p.Notes[0], "Time limit") {
			if _, err := fmt.Sscanf(strings.ReplaceAll(p.Notes[0], ",", ""), "Time limit: %d second", &seconds); err != nil {
				t.Fatal(err)
			}
			m["timeout_seconds"] = seconds
		}
		return m
	})
	check("write_file", &writeFile{&workspace{}}, func(t *rapid.T) members {
		m := members{"path": path.Draw(t, "path"), "content": text.Draw(t, "content")}
		if v := version.Draw(t, "version"); v != "" {
			m["version"] = v
		}
		return m
	}, func(t *rapid.T, p Preview) members {
		m := members{"path": p.Target, "content": readWhole(t, p.Body)}
		switch v := versionShown.FindString(p.Notes[0]); {
		case v != "":
			m["version"] = v
		case strings.Contains(p.Notes[0], "nothing is done"):
			m["version"] = absent
		}
		return m
	})
	check("edit_file", &editFile{&workspace{}}, func(t *rapid.T) members {
		m := members{"path": path.Draw(t, "path"), "old_string": text.Draw(t, "old") + "a", "new_string": text.Draw(t, "new"), "version": versionOf([]byte(text.Draw(t, "file")))}
		if rapid.Bool().Draw(t, "all") {
			m["replace_all"] = true
		}
		return m
	}, func(t *rapid.T, p Preview) members {
		m := members{"path": p.Target, "old_string": readSide(p.Body, " -"), "new_string": readSide(p.Body, " +"), "version": versionShown.FindString(p.Notes[1])}
		if strings.Contains(p.Notes[0], "everywhere") {
			m["replace_all"] = true
		}
		return m
	})
	check("read_file", &readFile{&workspace{}}, func(t *rapid.T) members {
		return members{"path": path.Draw(t, "path"), "limit": rapid.IntRange(1, readLines).Draw(t, "limit")}
	}, func(t *rapid.T, p Preview) (m members) {
		if err := json.Unmarshal([]byte(p.Body), &m); err != nil {
			t.Fatal(err)
		}
		return m
	})
}

// readWhole reads a file's content back from its rendering.
func readWhole(t *rapid.T, body string) string {
	if body == "" {
		return ""
	}
	var content strings.Builder
	for line := range strings.SplitSeq(body, "\n") {
		switch {
		case line == noNewline:
			return strings.TrimSuffix(content.String(), "\n")
		case line == "" || line[0] != '+':
			t.Fatalf("the line %q", line)
		}
		content.WriteString(line[1:] + "\n")
	}
	return content.String()
}

// readSide reads one side of a replacement back: the lines with these marks.
func readSide(body, marks string) string {
	var lines []string
	for line := range strings.SplitSeq(body, "\n") {
		if strings.Contains(marks, line[:1]) {
			lines = append(lines, line[1:])
		}
	}
	return strings.Join(lines, "\n")
}

// Nobody is asked about a call that can't be carried out anyway.
func TestDescribeRefusesWhatCallWouldRefuse(t *testing.T) {
	for _, tt := range []struct {
		tool Tool
		args members
		code Code
	}{
		{&shell{}, members{"command": " \n"}, CodeInvalidArguments},
		{&shell{}, members{"command": "a\x00b"}, CodeInvalidArguments},
		{&shell{}, members{"command": strings.Repeat("x", shellMaxCommand+1)}, CodeInvalidArguments},
		{&writeFile{&workspace{}}, members{"path": "../x", "content": ""}, CodeNotAllowed},
		{&writeFile{&workspace{}}, members{"path": "a/../x", "content": ""}, CodeNotAllowed},
		{&writeFile{&workspace{}}, members{"path": "/etc/passwd", "content": ""}, CodeNotAllowed},
		{&writeFile{&workspace{}}, members{"path": "a\nb", "content": ""}, CodeInvalidArguments},
		{&editFile{&workspace{}}, members{"path": "a", "old_string": "x", "new_string": "x", "version": anyVersion}, CodeInvalidArguments},
		{&readFile{&workspace{}}, members{"path": "/etc/passwd"}, CodeNotAllowed},
		{&listFiles{&workspace{}}, members{"path": ".."}, CodeNotAllowed},
	} {
		_, err := tt.tool.Describe(arguments(t, tt.tool, tt.args))
		wantCode(t, err, tt.code)
		_, err = tt.tool.Call(t.Context(), arguments(t, tt.tool, tt.args))
		wantCode(t, err, tt.code)
	}
}

// What a person would see of a long line is cut by the surface, after it has hidden the secrets: here the line is whole.
func TestTheSummaryIsTheWholeLine(t *testing.T) {
	command := "deploy " + strings.Repeat("--flag ", 100) + `PASSWORD="correct-horse-battery-staple" now`
	for _, tt := range []struct {
		tool Tool
		args members
		want Preview
	}{
		{&shell{}, members{"command": command + "\nls"}, Preview{Summary: "Run " + command + " …", Target: "deploy"}},
		{&shell{}, members{"command": "/" + strings.Repeat("x", 300) + " y"}, Preview{
			Summary: "Run /" + strings.Repeat("x", 300) + " y", Target: "/" + strings.Repeat("x", 300),
		}},
	} {
		p, err := tt.tool.Describe(arguments(t, tt.tool, tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if p.Summary != tt.want.Summary || p.Target != tt.want.Target {
			t.Errorf("summary %q\ntarget %q", p.Summary, p.Target)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"äöüß", 3, "äö…"},
		{"", 3, ""},
		{"😀😀😀", 2, "😀…"},
	} {
		if got := shorten(tt.s, tt.limit); got != tt.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

// What a JSON preview shows has the same canonical form as the arguments.
func TestJSONPreviewKeepsNumbers(t *testing.T) {
	p, err := jsonPreview("", "", json.RawMessage(`{"a":12345678901234567890,"b":1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(p.Body)
	if err := v.Compact(); err != nil || string(v) != `{"a":12345678901234567890,"b":1.0}` {
		t.Errorf("got %s, %v", v, err)
	}
}

// What people read comes in their language; what is exact stays as it is.
func TestDescribeInChinese(t *testing.T) {
	w := &workspace{lang: language.Chinese}
	for _, c := range []struct {
		tool Tool
		args string
		want Preview
	}{
		{&shell{lang: language.Chinese}, `{"command":"rm -rf build","timeout_seconds":90}`, Preview{
			Summary: "运行 rm -rf build", Target: "rm", Kind: KindCommand, Body: "rm -rf build",
			Notes: []string{"时间限制：90 秒。", "将运行：rm。", "不受限制：approvalbot 自身用户能做的，它都能做。"},
		}},
		{&shell{lang: language.Chinese}, `{"command":"f() { ls; }; f"}`, Preview{
			Summary: "运行 f() { ls; }; f", Target: "ls", Kind: KindCommand, Body: "f() { ls; }; f",
			Notes: []string{"至少会运行：ls, f。无法完全确定它会运行哪些程序：它定义了函数，而函数可以代表任何程序。", "不受限制：approvalbot 自身用户能做的，它都能做。"},
		}},
		{&editFile{w}, `{"path":"a.txt","old_string":"x","new_string":"y","version":"sha256:00000000000000000000000000000000"}`, Preview{
			Summary: "修改 a.txt", Target: "a.txt", Kind: KindDiff, Body: "-x\n+y",
			Notes: []string{"仅当该文本恰好出现一次时才替换。", "仅当文件仍是智能体所知的版本（sha256:00000000000000000000000000000000）时。"},
		}},
	} {
		got, err := c.tool.Describe(json.RawMessage(c.args))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}
