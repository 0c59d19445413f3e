package devslack

import (
	"context"
	"encoding/json"
	"errors"
	goflag "flag"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

var shots = goflag.String("page.shots", "", "directory for screenshots of the page")

func TestPageHandler(t *testing.T) {
	get := func(method, path string) *http.Response {
		w := httptest.NewRecorder()
		pageHandler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Result()
	}
	for path, contentType := range map[string]string{
		"/": "text/html", "/_page/app.js": "text/javascript", "/_page/style.css": "text/css", "/_page/icon.svg": "image/svg+xml",
	} {
		r := get("GET", path)
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), contentType) {
			t.Errorf("GET %s: %d %s, want %s", path, r.StatusCode, r.Header.Get("Content-Type"), contentType)
		}
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("GET %s: policy %q", path, policy)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: types may be sniffed", path)
		}
	}
	for _, path := range []string{"/index.html", "/_page/", "/_page/nothing.js", "/_page/../page.go", "/favicon.ico", "/_page"} {
		if r := get("GET", path); r.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d, want 404", path, r.StatusCode)
		}
	}
	if r := get("POST", "/"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", r.StatusCode)
	}
}

// Nothing that the page shows may become markup or code, so the ways to do
// that are not in its sources at all.
func TestPageHasNoWayToMarkup(t *testing.T) {
	files, err := filepath.Glob("page/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("page sources: %v, %v", files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"innerHTML =", "innerHTML=", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "javascript:", "createContextualFragment", "onclick=", "srcdoc"} {
			if strings.Contains(string(source), way) {
				t.Errorf("%s contains %q", file, way)
			}
		}
		if strings.Contains(string(source), "https://") {
			t.Errorf("%s names another site", file)
		}
	}
}

// browserPath finds the browser that the page tests drive. Without one they
// are skipped, but not where they are the definition of done.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no Chromium: set CHROMIUM to its path")
	}
	t.Skip("no Chromium: set CHROMIUM to its path")
	return ""
}

// A viewport is a screen that the page must look at home on.
type viewport struct {
	name          string
	width, height int64
	phone         bool
}

var (
	desktop = viewport{"desktop", 1280, 860, false}
	phone   = viewport{"phone", 390, 844, true}
)

func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(browserPath(t)), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
	}
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	browser, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	return browser
}

// A stage is a local Slack on loopback with a bot in it, and the page open.
type stage struct {
	t    *testing.T
	srv  *Server
	ws   Workspace
	url  string
	api  *slack.Client
	tab  context.Context
	view viewport
	// actions are those that the bot has no answer to.
	actions chan *slack.BlockAction
}

func newStage(t *testing.T, browser context.Context, view viewport, run func(*stage, *socketmode.Client, socketmode.Event)) *stage {
	t.Helper()
	s := &stage{t: t, view: view, actions: make(chan *slack.BlockAction, 16)}
	s.serve(t, "", "127.0.0.1:0")
	if run != nil {
		s.connect(t, run)
	}
	s.open(t, browser)
	return s
}

// serve starts the local Slack and returns what ends it, which the end of the
// test does in any case.
func (s *stage) serve(t *testing.T, dir, addr string) (stop func()) {
	var err error
	if s.srv, err = New(Options{Dir: dir, NoRateLimits: true}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		if err := s.srv.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	t.Cleanup(stop)
	s.ws = s.srv.Workspace()
	s.url = "http://" + listener.Addr().String()
	s.api = slack.New(s.ws.App.BotToken, slack.OptionAppLevelToken(s.ws.App.AppToken), slack.OptionAPIURL(s.url+"/api/"))
	return stop
}

// connect runs a bot: an unmodified slack-go client whose every event goes to
// run, which acknowledges what it wants to.
func (s *stage) connect(t *testing.T, run func(*stage, *socketmode.Client, socketmode.Event)) {
	client := socketmode.New(s.api)
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	hello := make(chan struct{})
	working.Go(func() { client.RunContext(ctx) }) // ends with an error when ctx does
	working.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-client.Events:
				if event.Type == socketmode.EventTypeHello {
					close(hello)
				}
				run(s, client, event)
			}
		}
	})
	t.Cleanup(func() { cancel(); working.Wait() })
	select {
	case <-hello:
	case <-time.After(10 * time.Second):
		t.Fatal("the bot got no hello")
	}
}

func (s *stage) open(t *testing.T, browser context.Context) {
	tab, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	tab, cancel := context.WithTimeout(tab, 60*time.Second)
	s.tab = tab
	var watching sync.WaitGroup
	console := chromedp.Console(tab)
	watching.Go(func() {
		for message, err := range console {
			if err != nil {
				return // the tab is closed
			}
			// A refused request is something that the page has to cope with; a
			// violated policy or an exception is a fault of the page.
			if (message.Type == chromedp.ConsoleError || message.IsException()) && message.Source != "network" {
				t.Errorf("the page complains: %v", message)
			}
		}
	})
	t.Cleanup(func() { cancel(); closeTab(); watching.Wait() })
	options := []chromedp.EmulateViewportOption{}
	if s.view.phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	s.do(chromedp.EmulateViewport(s.view.width, s.view.height, options...), chromedp.Navigate(s.url))
	s.until(`document.querySelector('[data-testid="composer-input"]')`)
}

func (s *stage) do(actions ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	if err := chromedp.Do(s.tab, actions...); err != nil {
		s.shot("failed")
		s.t.Fatalf("%v", err)
	}
}

// until waits for an expression to become true. The page says when it changes,
// and where the focus goes: there is nothing to poll.
func (s *stage) until(expression string) {
	s.t.Helper()
	const wait = `new Promise((done) => {
		const holds = () => { try { return Boolean(%s); } catch { return false; } };
		if (holds()) return done(true);
		const look = () => { if (holds()) { observer.disconnect(); document.removeEventListener("focusin", look); done(true); } };
		const observer = new MutationObserver(look);
		observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		document.addEventListener("focusin", look);
	})`
	ctx, cancel := context.WithTimeout(s.tab, 15*time.Second)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(wait, expression), chromedp.EvalAwaitPromise)); err != nil {
		s.shot("failed")
		page, _ := chromedp.Run(s.tab, chromedp.Evaluate[string](`"focus on " + document.activeElement.outerHTML.slice(0, 300) + "\n" + document.body.innerText`)) // only to explain the failure
		s.t.Fatalf("never true: %s (%v)\nThe page shows:\n%s", expression, err, page)
	}
}

// see waits until an element with this test id contains the text.
func (s *stage) see(testid, text string) {
	s.t.Helper()
	s.until(fmt.Sprintf(`[...document.querySelectorAll('[data-testid="%s"]')].some((e) => e.textContent.includes(%s))`, testid, quote(text)))
}

func (s *stage) click(selector string) {
	s.t.Helper()
	s.do(chromedp.Click(chromedp.CSS(selector)))
}

func (s *stage) press(testid string) { s.t.Helper(); s.click(`[data-testid="` + testid + `"]`) }

func (s *stage) say(text string) {
	s.t.Helper()
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="composer-input"]`), text+kb.Enter))
}

// become plays another user.
func (s *stage) become(name string) {
	s.t.Helper()
	s.eval(fmt.Sprintf(`(() => { const e = document.querySelector('[data-testid="user-switch"]'); e.value = %s; e.dispatchEvent(new Event("change")); return true; })()`, quote(s.user(name))))
}

func (s *stage) eval(expression string) any {
	s.t.Helper()
	value, err := chromedp.Run(s.tab, chromedp.Evaluate[any](expression))
	if err != nil {
		s.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (s *stage) user(name string) string {
	s.t.Helper()
	for _, u := range s.ws.Users {
		if u.Name == name {
			return u.ID
		}
	}
	s.t.Fatalf("no user %s", name)
	return ""
}

func (s *stage) channel(name string) string {
	s.t.Helper()
	for _, c := range s.ws.Channels {
		if c.Name == name {
			return c.ID
		}
	}
	s.t.Fatalf("no channel %s", name)
	return ""
}

// shot keeps a picture when the tests are asked for pictures.
func (s *stage) shot(name string) {
	if *shots == "" {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		_, err := chromedp.Call(s.tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		if err != nil {
			s.t.Logf("no %s scheme: %v", scheme, err)
			return
		}
		picture, err := chromedp.Run(s.tab, chromedp.CaptureScreenshot())
		if err != nil {
			s.t.Logf("no screenshot: %v", err)
			return
		}
		path := filepath.Join(*shots, s.view.name+"-"+name+"-"+scheme+".png")
		if err := os.WriteFile(path, picture, 0o600); err != nil {
			s.t.Error(err)
		}
	}
}

func plainObject(text string) *slack.TextBlockObject {
	no := false
	return &slack.TextBlockObject{Type: "plain_text", Text: text, Emoji: &no}
}

func codeBlock(text string) *slack.RichTextBlock {
	return slack.NewRichTextBlock("", &slack.RichTextPreformatted{Type: slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(text, nil)}})
}

// askCard is an ask as our bot posts one.
func askCard(command string) []slack.Block {
	button := func(id, text string, style slack.Style) *slack.ButtonBlockElement {
		b := slack.NewButtonBlockElement(id, "ask-1", plainObject(text))
		b.Style = style
		return b
	}
	deny := button("deny", "Deny", "")
	deny.Confirm = slack.NewConfirmationBlockObject(plainObject("Deny this?"), plainObject("The run goes on without it."), plainObject("Deny"), plainObject("Back"))
	return []slack.Block{
		slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", "*Run a shell command?*", false, true), nil, nil),
		codeBlock(command),
		slack.NewActionBlock("ask", button("approve", "Approve", slack.StylePrimary), deny, button("review", "Review", ""), button("silent", "Silent", slack.StyleDanger)),
		slack.NewContextBlock("", slack.NewTextBlockObject("mrkdwn", fmt.Sprintf("Expires <!date^%d^{time}|soon> · may approve: anyone here", time.Now().Add(2*time.Minute).Unix()), false, true)),
	}
}

func progress(status slack.TaskCardStatus) slack.Block {
	return slack.NewPlanBlock("Working on it").WithTasks(
		slack.NewTaskCardBlock("1", "Read README.md").WithStatus(slack.TaskCardStatusComplete),
		slack.NewTaskCardBlock("2", "Run a shell command").WithStatus(status),
		slack.NewTaskCardBlock("3", "Write the answer").WithStatus(slack.TaskCardStatusPending))
}

// testBot asks before it acts, in as few lines as can show everything that the
// page has to show.
func testBot(s *stage, client *socketmode.Client, event socketmode.Event) {
	fail := func(err error) {
		if err != nil {
			s.t.Errorf("bot: %v", err)
		}
	}
	switch data := event.Data.(type) {
	case slackevents.EventsAPIEvent:
		fail(client.Ack(*event.Request))
		if mention, ok := data.InnerEvent.Data.(*slackevents.AppMentionEvent); ok {
			fail(s.ask(mention.Channel, mention.TimeStamp, mention.Text))
		}
	case slack.SlashCommand:
		fail(client.Ack(*event.Request, map[string]any{"response_type": "ephemeral", "text": "Nothing is pending for " + data.Text}))
	case slack.InteractionCallback:
		fail(s.interaction(client, event, data))
	}
}

func (s *stage) ask(channel, ts, text string) error {
	command := text
	if _, after, ok := strings.Cut(text, "`"); ok {
		command, _, _ = strings.Cut(after, "`")
	}
	command = html.UnescapeString(command)
	if _, _, err := s.api.PostMessage(channel, slack.MsgOptionText("Working", false), slack.MsgOptionBlocks(progress(slack.TaskCardStatusInProgress)), slack.MsgOptionTS(ts)); err != nil {
		return err
	}
	_, _, err := s.api.PostMessage(channel, slack.MsgOptionText("Run a shell command?", false), slack.MsgOptionBlocks(askCard(command)...), slack.MsgOptionTS(ts))
	return err
}

func (s *stage) interaction(client *socketmode.Client, event socketmode.Event, data slack.InteractionCallback) error {
	if data.Type == slack.InteractionTypeViewSubmission {
		reason := data.View.State.Values["reason"]["text"].Value
		if len(reason) < 5 {
			return client.Ack(*event.Request, slack.NewErrorsViewSubmissionResponse(map[string]string{"reason": "Say a little more, please."}))
		}
		return client.Ack(*event.Request)
	}
	if data.Type != slack.InteractionTypeBlockActions {
		return client.Ack(*event.Request)
	}
	action := data.ActionCallback.BlockActions[0]
	if action.ActionID == "silent" {
		return nil // never acknowledged
	}
	if err := client.Ack(*event.Request); err != nil {
		return err
	}
	switch action.ActionID {
	case "approve", "deny":
		if data.User.Name == "gus" {
			_, err := s.api.PostEphemeral(data.Channel.ID, data.User.ID, slack.MsgOptionText("You can't approve this: guests never can.", false), slack.MsgOptionTS(data.Container.ThreadTs))
			return err
		}
		words := map[string]string{"approve": "Approved", "deny": "Denied"}[action.ActionID] + " by <@" + data.User.ID + ">"
		_, _, _, err := s.api.UpdateMessage(data.Channel.ID, data.Container.MessageTs, slack.MsgOptionText(words, false),
			slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", words, false, true), nil, nil), codeBlock("ok")))
		return err
	case "review":
		_, err := s.api.OpenView(data.TriggerID, reviewModal())
		return err
	case "more":
		_, err := s.api.PushView(data.TriggerID, slack.ModalViewRequest{Type: slack.VTModal, Title: plainObject("Second"), Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewSectionBlock(plainObject("On top of the first."), nil, nil)}}})
		return err
	}
	s.actions <- action
	return nil
}

func reviewModal() slack.ModalViewRequest {
	input := slack.NewPlainTextInputBlockElement(plainObject("Why?"), "text").WithMultiline(true)
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plainObject("Review the call"), Submit: plainObject("Approve"), Close: plainObject("Back"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			codeBlock("line one\n    four spaces   and three\n\ttab\n" + strings.Repeat("a very long command line ", 60)),
			slack.NewActionBlock("more", slack.NewButtonBlockElement("more", "", plainObject("More"))),
			slack.NewInputBlock("reason", plainObject("Reason"), plainObject("It is kept."), input),
			slack.NewInputBlock("who", plainObject("Who"), nil, slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainObject("Somebody"), "user")).WithOptional(true),
		}},
	}
}

func TestPage(t *testing.T) {
	browser := startBrowser(t)
	t.Run("text", func(t *testing.T) { testText(newStage(t, browser, desktop, nil)) })
	t.Run("restart", func(t *testing.T) { testRestart(t, browser) })
	for _, view := range []viewport{desktop, phone} {
		t.Run(view.name, func(t *testing.T) {
			t.Run("ask", func(t *testing.T) { testAsk(newStage(t, browser, view, testBot)) })
			t.Run("refusal", func(t *testing.T) { testRefusal(newStage(t, browser, view, testBot)) })
			t.Run("confirm", func(t *testing.T) { testConfirm(newStage(t, browser, view, testBot)) })
			t.Run("modal", func(t *testing.T) { testModal(newStage(t, browser, view, testBot)) })
			t.Run("hostile", func(t *testing.T) { testHostile(newStage(t, browser, view, testBot)) })
			t.Run("alone", func(t *testing.T) { testAlone(newStage(t, browser, view, nil)) })
			t.Run("home", func(t *testing.T) { testHome(newStage(t, browser, view, testBot)) })
			t.Run("tried", func(t *testing.T) { testTried(newStage(t, browser, view, testBot)) })
			t.Run("end", func(t *testing.T) { testEnd(newStage(t, browser, view, testBot)) })
			t.Run("absent", func(t *testing.T) { testAbsent(newStage(t, browser, view, testBot)) })
			t.Run("details", func(t *testing.T) { testDetails(newStage(t, browser, view, testBot)) })
			t.Run("nohome", func(t *testing.T) { testNoHome(newStage(t, browser, view, testBot)) })
			t.Run("gallery", func(t *testing.T) { testGallery(newStage(t, browser, view, testBot)) })
			t.Run("people", func(t *testing.T) { testPeople(newStage(t, browser, view, testBot)) })
			t.Run("drawer", func(t *testing.T) { testDrawer(newStage(t, browser, view, testBot)) })
		})
	}
}

// firstTS is the ts of the channel's first message.
func (s *stage) firstTS() string {
	s.t.Helper()
	messages, err := s.srv.Messages(s.channel("general"), "")
	if err != nil || len(messages) == 0 {
		s.t.Fatalf("no messages: %v", err)
	}
	return messages[0].TS
}

// openThread opens the thread under the channel's first message.
func (s *stage) openThread() {
	s.t.Helper()
	s.press("replies")
	s.until(`!document.querySelector('[data-testid="thread"]').hidden`)
	s.until(`document.querySelector('[data-testid="thread"] [data-action-id="approve"]')`)
}

const inThread = `[data-testid="thread"] `

// A person writes, the card comes without a reload, a click ends it.
func testAsk(s *stage) {
	s.shot("empty")
	s.say("@approvalbot run `printf ok > proof.txt`")
	s.see("message", "printf ok > proof.txt")
	s.see("replies", "2 replies")
	s.until(`document.querySelector('[data-testid="message"] .mention')?.dataset.user === ` + quote(s.ws.App.BotUserID))
	s.openThread()
	s.shot("card")
	if s.view.phone {
		s.click(inThread + `[data-action-id="approve"]`)
	} else { // without a mouse
		s.do(chromedp.Focus(chromedp.CSS(inThread+`[data-action-id="approve"]`)), chromedp.KeyEvent(kb.Enter))
	}
	s.see("thread", "Approved by @alice")
	s.until(`!document.querySelector('[data-action-id="approve"]')`)
	s.until(`document.activeElement.dataset.testid !== undefined`) // the focus isn't lost with the button
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="reply-input"]`), "thanks"+kb.Enter))
	s.see("thread-messages", "thanks")
	if err := s.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: s.channel("general"), ThreadTS: s.firstTS(), Status: "is thinking…"}); err != nil {
		s.t.Fatal(err)
	}
	s.see("typing", "approvalbot is thinking…")
	s.shot("ended")
	s.do(chromedp.KeyEvent(kb.Escape))
	s.until(`document.querySelector('[data-testid="thread"]').hidden`)
	s.see("replies", "3 replies")
}

// Somebody who may not decide is told so alone; a click that nobody answers
// says so; a confirm dialog can be left.
func testRefusal(s *stage) {
	s.say("@approvalbot run `date`")
	s.see("replies", "2 replies")
	s.become("gus")
	s.openThread()
	s.click(inThread + `[data-action-id="approve"]`)
	s.see("thread", "You can't approve this")
	s.see("thread", "Only visible to you")
	s.until(`document.querySelector('[data-action-id="approve"]')`)
	s.shot("ephemeral")
	s.become("bob")
	s.until(`document.querySelector('[data-action-id="approve"]') && !document.querySelector('[data-ephemeral="true"]')`)
	s.click(inThread + `[data-action-id="deny"]`)
	s.see("confirm", "The run goes on without it.")
	s.shot("confirm")
	s.press("confirm-deny")
	s.until(`!document.querySelector('[data-testid="confirm"]')`)
	s.click(inThread + `[data-action-id="silent"]`)
	s.until(`document.querySelector('[data-action-id="silent"]').dataset.state === "busy"`)
	s.see("action-note", "approvalbot didn't answer.")
	s.shot("unanswered")
	s.click(inThread + `[data-action-id="deny"]`)
	s.press("confirm-ok")
	s.see("thread", "Denied by @bob")
}

// A click that wants to be confirmed reaches the app only once it is. The dialog
// has the focus while it is there, begins on the button that does nothing, says
// what it is to a screen reader, and works without a mouse.
func testConfirm(s *stage) {
	s.say("@approvalbot run `date`")
	s.see("replies", "2 replies")
	s.openThread()
	const deny = inThread + `[data-action-id="deny"]`
	clicks := func() (n int) {
		for _, c := range s.srv.Calls(0) {
			if c.Name == "interactive" {
				n++
			}
		}
		return n
	}
	ask := func() {
		s.do(chromedp.Focus(chromedp.CSS(deny)), chromedp.KeyEvent(kb.Enter))
		s.until(`document.activeElement.dataset.testid === "confirm-deny"`)
	}
	left := func(how string) {
		s.until(`!document.querySelector('[data-testid="confirm"]')`)
		s.until(`document.activeElement.dataset.actionId === "deny"`) // back where one was
		if n := clicks(); n != 0 {
			s.t.Errorf("%s: the app was told %d times", how, n)
		}
		if s.eval(`document.querySelector('[data-testid="thread"]').hidden`) == true {
			s.t.Errorf("%s closed the thread, too", how)
		}
	}
	ask()
	s.until(`document.getElementById(document.querySelector("dialog[open]").getAttribute("aria-labelledby")).textContent.length > 0`)
	s.do(chromedp.KeyEvent(kb.Escape))
	left("Escape")
	ask()
	s.do(chromedp.KeyEvent(kb.Enter))
	left("Enter on the button that does nothing")
	ask()
	s.press("confirm-deny")
	left("a click on it")
	ask()
	s.do(chromedp.KeyEvent(kb.Tab))
	s.until(`document.activeElement.dataset.testid === "confirm-ok"`)
	s.do(chromedp.KeyEvent(kb.Enter))
	s.see("thread", "Denied by @alice")
	if n := clicks(); n != 1 {
		s.t.Errorf("the app was told %d times", n)
	}
}

func testModal(s *stage) {
	s.say("@approvalbot run `date`")
	s.see("replies", "2 replies")
	s.openThread()
	s.click(inThread + `[data-action-id="review"]`)
	s.see("modal-title", "Review the call")
	s.until(`document.querySelector('[data-testid="modal"] [data-testid="preformatted"]').textContent.includes("    four spaces   and three\n\ttab\n")`)
	if wide := s.eval(`document.querySelector('[data-testid="modal"] pre').scrollWidth > document.querySelector('[data-testid="modal"] pre').clientWidth`); wide == true {
		s.t.Error("a long line does not wrap")
	}
	s.shot("modal")
	s.press("modal-submit")
	s.see("input-error", "Please complete this required field.")
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="modal"] [data-action-id="text"]`), "no"))
	s.press("modal-submit")
	s.see("input-error", "Say a little more, please.")
	s.until(`document.querySelector('[data-testid="modal"] [data-action-id="text"]').value === "no"`)
	s.shot("modal-error")
	s.click(`[data-testid="modal"] [data-action-id="more"]`)
	s.see("modal-title", "Second")
	s.press("modal-back")
	s.see("modal-title", "Review the call")
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="modal"] [data-action-id="text"]`), " reason at all"))
	s.press("modal-submit")
	s.until(`!document.querySelector('[data-testid="modal"]').open`)
}

// Whatever a text contains, it stays text.
func testHostile(s *stage) {
	hostile := "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script> \u202Eevil\u2066 *b* <!channel> javascript:alert(1)"
	for _, option := range []slack.MsgOption{
		slack.MsgOptionText(hostile, false),
		slack.MsgOptionBlocks(codeBlock(hostile), slack.NewHeaderBlock(plainObject("<b>header</b> &amp; co")),
			slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement(hostile, nil)))),
	} {
		if _, _, err := s.api.PostMessage(s.channel("general"), option); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.srv.SendMessage(MessageRequest{User: s.user("erin"), Channel: s.channel("general"), Text: hostile}); err != nil {
		s.t.Fatal(err)
	}
	s.until(`document.querySelectorAll('[data-testid="message"]').length === 3`)
	s.until(`document.querySelector('pre').textContent === ` + quote(hostile))
	s.see("block", "<b>header</b> & co")
	if n := s.eval(`document.querySelectorAll('[data-testid="messages"] :is(img, script, b:not(.mrkdwn b), iframe)').length`); n != float64(0) {
		s.t.Errorf("%v elements were made out of texts", n)
	}
	if got := s.eval(`window.pwned ?? "safe"`); got != "safe" {
		s.t.Error("a text ran as a script")
	}
	if got := s.eval(`[...document.querySelectorAll('pre, bdi')].every((e) => getComputedStyle(e).unicodeBidi.startsWith("isolate"))`); got != true {
		s.t.Error("direction marks can reach out of their text")
	}
	s.shot("hostile")
}

// Without a bot the page says so, in the banner and when something is clicked.
func testAlone(s *stage) {
	s.see("banner", "No app is connected")
	if _, _, err := s.api.PostMessage(s.channel("general"), slack.MsgOptionText("card", false), slack.MsgOptionBlocks(askCard("date")...)); err != nil {
		s.t.Fatal(err)
	}
	s.until(`document.querySelector('[data-action-id="approve"]')`)
	s.click(`[data-action-id="approve"]`)
	s.see("action-note", "approvalbot is not connected.")
	s.say("/approvals mine")
	s.see("composer", "approvalbot is not connected")
	s.connect(s.t, testBot)
	s.until(`document.querySelector('[data-testid="banner"]').hidden`)
	s.say("") // the command that failed is still there
	s.see("messages", "Nothing is pending for mine")
	s.shot("command")
}

func testHome(s *stage) {
	_, err := s.api.PublishView(s.user("alice"), slack.HomeTabViewRequest{Type: slack.VTHomeTab,
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewHeaderBlock(plainObject("Pending approvals")), slack.NewSectionBlock(plainObject("None."), nil, nil)}}}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if s.view.phone {
		s.press("menu")
		s.shot("list")
	}
	s.click(`[data-testid="channel-link"][data-kind="im"]`)
	s.press("tab-home")
	s.see("home", "Pending approvals")
	s.shot("home")
	s.press("tab-messages")
	s.say("hello there")
	s.see("messages", "hello there")
}

// Every block has a picture.
func testGallery(s *stage) {
	for _, group := range gallery {
		reply, err := http.Post(s.url+"/api/chat.postMessage", "application/json", strings.NewReader(
			fmt.Sprintf(`{"token":%q,"channel":%q,"text":"gallery","blocks":%s}`, s.ws.App.BotToken, s.channel("general"), group)))
		if err != nil {
			s.t.Fatal(err)
		}
		var answer struct {
			OK       bool
			Error    string
			Metadata struct{ Messages []string } `json:"response_metadata"`
		}
		err = json.NewDecoder(reply.Body).Decode(&answer)
		if err := errors.Join(err, reply.Body.Close()); err != nil || !answer.OK {
			s.t.Fatalf("%v %+v", err, answer)
		}
	}
	s.until(fmt.Sprintf(`document.querySelectorAll('[data-testid="message"]').length === %d`, len(gallery)))
	if n := s.eval(`document.querySelectorAll('.unknown').length`); n != float64(0) {
		s.t.Errorf("%v blocks or elements are not drawn", n)
	}
	s.choose("s", "select", "1", func(a *slack.BlockAction) string { return a.SelectedOption.Value })
	s.choose("u", "select", s.user("bob"), func(a *slack.BlockAction) string { return a.SelectedUser })
	s.choose("dp", "input", "2026-06-02", func(a *slack.BlockAction) string { return a.SelectedDate })
	s.choose("tp", "input", "11:45", func(a *slack.BlockAction) string { return a.SelectedTime })
	s.eval(`document.querySelector('[data-action-id="c"] input[value="2"]').click()`)
	s.acted("c", "2", func(a *slack.BlockAction) string { return a.SelectedOptions[0].Value })
	s.eval(`document.querySelector('[data-action-id="r"] input[value="1"]').click()`)
	s.acted("r", "1", func(a *slack.BlockAction) string { return a.SelectedOption.Value })
	s.eval(`document.querySelector('[data-action-id="o"]').click(), document.querySelector('[role="menuitem"][data-value="2"]').click()`)
	s.acted("o", "2", func(a *slack.BlockAction) string { return a.SelectedOption.Value })
	s.eval(`document.querySelector('[data-action-id="f"]').click()`)
	s.acted("f", "+", func(a *slack.BlockAction) string { return a.Value })
	if wide := s.eval(`document.documentElement.scrollWidth > innerWidth || document.querySelector('[data-testid="messages"]').scrollWidth > document.querySelector('[data-testid="messages"]').clientWidth`); wide == true {
		s.t.Error("the page scrolls sideways")
	}
	for i := range gallery {
		s.eval(fmt.Sprintf(`document.querySelectorAll('[data-testid="message"]')[%d].scrollIntoView({ block: "start" })`, i))
		s.shot(fmt.Sprintf("gallery-%d", i))
	}
}

// Mentions by name, editing, deleting, and what another user sees of it.
func testPeople(s *stage) {
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="composer-input"]`), "@bo"))
	s.see("suggestion", "bob")
	s.shot("suggestions")
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="composer-input"]`), kb.Enter))
	s.until(`document.querySelector('[data-testid="composer-input"]').value === "@bob "`)
	s.say("look at `mail @carol`")
	s.until(`document.querySelector('[data-testid="message"] .mention').dataset.user === ` + quote(s.user("bob")))
	if n := s.eval(`document.querySelectorAll('[data-testid="message"] .mention').length`); n != float64(1) {
		s.t.Errorf("%v mentions; a name in code is none", n)
	}
	s.say("to be deleted")
	s.see("message", "to be deleted")
	if !s.view.phone {
		s.eval(`document.querySelectorAll('[data-testid="message-menu"]')[0].click(), document.querySelector('[data-testid="edit-message"]').click()`)
		if got := s.eval(`document.querySelector('[data-testid="edit-text"]').value`); got != "@bob look at `mail @carol`" {
			s.t.Errorf("to be edited: %q", got)
		}
		s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="edit-text"]`), " twice"))
		s.press("edit-save")
		s.see("edited", "(edited)")
		s.see("message", "look at mail @carol twice")
		s.eval(`document.querySelectorAll('[data-testid="message-menu"]')[1].click(), [...document.querySelectorAll('[data-testid="delete-message"]')].at(-1).click()`)
		s.press("confirm-ok")
		s.until(`document.querySelectorAll('[data-testid="message"]').length === 1`)
	}
	s.become("bob")
	s.until(`document.querySelector('.mention-me').textContent === "@bob"`)
	if got := s.eval(`document.title`); got != "#general – Local Slack" {
		s.t.Errorf("title %q", got)
	}
	if _, err := s.srv.SendMessage(MessageRequest{User: s.user("alice"), Channel: s.channel("random"), Text: "elsewhere"}); err != nil {
		s.t.Fatal(err)
	}
	random := `document.querySelector('[data-channel-id="` + s.channel("random") + `"]')`
	s.until(random + `.classList.contains("unread") && !` + random + `.querySelector(".count")`)
	if _, err := s.srv.SendMessage(MessageRequest{User: s.user("alice"), Channel: s.channel("random"), Text: "<@" + s.user("bob") + "> and <@" + s.user("carol") + ">"}); err != nil {
		s.t.Fatal(err)
	}
	s.until(`document.title.startsWith("(1) ")`)
	s.until(random + `.querySelector(".count").textContent === "1"`)
	s.see("others-new", "1") // carol's
	s.shot("unread")
	s.become("gus")
	s.until(`!document.querySelector('[data-channel-id="` + s.channel("random") + `"]')`)
}

// The page outlives a restart of its server.
func testRestart(t *testing.T, browser context.Context) {
	s := &stage{t: t, view: desktop}
	dir := t.TempDir()
	stop := s.serve(t, dir, "127.0.0.1:0")
	s.open(t, browser)
	s.say("before")
	s.see("message", "before")
	stop()
	s.see("banner", "does not answer")
	s.serve(t, dir, strings.TrimPrefix(s.url, "http://"))
	if _, err := s.srv.SendMessage(MessageRequest{User: s.user("bob"), Channel: s.channel("general"), Text: "after"}); err != nil {
		t.Fatal(err)
	}
	s.see("message", "after")
	s.see("banner", "No app is connected")
	s.see("message", "before")
}

// How texts are read, case by case, in the page's own modules.
func testText(s *stage) {
	// outline writes what matters of a tree: b(x) is a <b>, a[url](x) a link.
	s.eval(`window.outline = (node) => {
		if (node.nodeType === Node.TEXT_NODE) return node.data;
		const inner = [...node.childNodes].map(outline).join("");
		if (node.localName === "span" && node.className === "mention") return "{" + inner + "}";
		if (["span", "bdi"].includes(node.localName)) return inner;
		return node.localName + (node.href ? "[" + node.getAttribute("href") + "]" : "") + "(" + inner + ")";
	}, true`)
	run := func(expression string) any {
		s.t.Helper()
		value, err := chromedp.Run(s.tab, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
		if err != nil {
			s.t.Fatalf("%s: %v", expression, err)
		}
		return value
	}
	carol := s.user("carol")
	for text, want := range map[string]string{
		"plain":                           "plain",
		"*b* _i_ ~s~ `c*d*`":              "b(b) i(i) s(s) code(c*d*)",
		"2*3*4 snake_case_name ~/x":       "2*3*4 snake_case_name ~/x",
		"*_both_*":                        "b(i(both))",
		"a *b\nc*":                        "a *bbr()c*",
		"&lt;b&gt; &amp;amp;":             "<b> &amp;",
		"&gt; q1\n&gt; q2\nafter":         "blockquote(q1br()q2)after",
		"```a\n*b*```":                    "pre(a\n*b*)",
		"x\n```\ncode\n```\ny":            "xpre(code)y",
		"`a` `b`":                         "code(a) code(b)",
		"<https://e.example|l&amp;m>":     "a[https://e.example](l&m)",
		"<https://e.example?a=1&amp;b=2>": "a[https://e.example?a=1&b=2](https://e.example?a=1&b=2)",
		"<javascript:alert(1)|x>":         "x",
		"<data:text/html,x|y>":            "y",
		"see https://e.example/x.":        "see a[https://e.example/x](https://e.example/x).",
		"<@" + carol + "> hi":             "{@carol} hi",
		"<@U000|who>":                     "{@who}",
		"<!subteam^S000|@ops>":            "{@ops}",
		":wave: :no_such_thing:":          "👋 :no_such_thing:",
		"<!date^0^{date_num}|old>":        "time(1970-01-01)",
		"<!date^x^{date_num}|bad>":        "time(bad)",
		"<!unknown^thing|said>":           "said",
	} {
		got := run(fmt.Sprintf(`import("/_page/text.js").then((m) => outline(m.mrkdwn(%s)))`, quote(text)))
		if got != want {
			s.t.Errorf("mrkdwn %q\n got %q\nwant %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"@approvalbot run": "<@" + s.ws.App.BotUserID + "> run",
		"a@bob.example":    "a@bob.example",
		"@bobby and @bob":  "@bobby and <@" + s.user("bob") + ">",
		"`mail @bob`":      "`mail @bob`",
		"in #general, ok":  "in <#" + s.channel("general") + ">, ok",
	} {
		if got := run(fmt.Sprintf(`import("/_page/composer.js").then((m) => m.resolveMentions(%s))`, quote(text))); got != want {
			s.t.Errorf("typed %q\n got %q\nwant %q", text, got, want)
		}
	}
}

// choose sets a field as a person does, and waits for the app to hear of it.
func (s *stage) choose(action, tag, value string, got func(*slack.BlockAction) string) {
	s.t.Helper()
	s.eval(fmt.Sprintf(`(() => { const e = document.querySelector('%s[data-action-id="%s"]'); e.value = %s; e.dispatchEvent(new Event("input")); e.dispatchEvent(new Event("change")); return e.value; })()`, tag, action, quote(value)))
	s.acted(action, value, got)
}

// acted waits for the app to hear of an action.
func (s *stage) acted(action, value string, got func(*slack.BlockAction) string) {
	s.t.Helper()
	select {
	case a := <-s.actions:
		if a.ActionID != action || got(a) != value {
			s.t.Errorf("the app heard %s of %s, want %s of %s", got(a), a.ActionID, value, action)
		}
	case <-time.After(10 * time.Second):
		s.t.Errorf("the app did not hear of %s", action)
	}
}

func testDrawer(s *stage) {
	s.press("drawer-toggle")
	s.until(`!document.querySelector('[data-testid="drawer"]').hidden`)
	if _, _, err := s.api.PostMessage(s.channel("general"), slack.MsgOptionText("watched", false)); err != nil {
		s.t.Fatal(err)
	}
	s.until(`document.querySelector('[data-testid="call"][data-name="chat.postMessage"]')`)
	s.do(chromedp.SendKeys(chromedp.CSS(`[data-testid="calls-filter"]`), "postmessage"))
	s.until(`[...document.querySelectorAll('[data-testid="call"]')].every((e) => e.dataset.name === "chat.postMessage")`)
	s.click(`[data-testid="call"] summary`)
	s.until(`document.querySelector('[data-testid="call"] pre').textContent.includes("watched")`)
	if got := s.eval(`document.body.textContent.includes("xoxb-local")`); got == true && strings.Contains(fmt.Sprint(s.eval(`document.body.textContent`)), s.ws.App.BotToken) {
		s.t.Error("the drawer shows a token")
	}
	s.shot("drawer")
	s.press("drawer-close")
	s.until(`document.querySelector('[data-testid="drawer"]').hidden`)
}

// gallery holds one message per list: every block and element that a message
// can contain.
var gallery = []string{
	`[{"type":"header","text":{"type":"plain_text","text":"Deploy to production? :rocket:"}},
	{"type":"section","text":{"type":"mrkdwn","text":"*bold* _italic_ ~strike~ ` + "`code <b>`" + ` <https://example.com|a link> https://example.org/x?y=1 :white_check_mark:\n> quoted _text_\n> more\n` + "```pre  formatted\\n  text```" + `\nafter"},
	 "accessory":{"type":"button","text":{"type":"plain_text","text":"Details"},"action_id":"d","url":"https://example.com"}},
	{"type":"section","fields":[{"type":"mrkdwn","text":"*Requested by*\nalice"},{"type":"mrkdwn","text":"*Expires*\n<!date^1893456000^{date_short_pretty} at {time}|later>"},{"type":"plain_text","text":"plain *text*"},{"type":"mrkdwn","text":"<!here> <!subteam^S1|@ops>"}]},
	{"type":"divider"},
	{"type":"actions","elements":[{"type":"button","style":"primary","text":{"type":"plain_text","text":"Approve"},"action_id":"a"},{"type":"button","style":"danger","text":{"type":"plain_text","text":"Delete"},"action_id":"b","confirm":{"title":{"type":"plain_text","text":"Sure?"},"text":{"type":"mrkdwn","text":"*Really*?"},"confirm":{"type":"plain_text","text":"Yes"},"deny":{"type":"plain_text","text":"No"},"style":"danger"}},{"type":"button","text":{"type":"plain_text","text":"Other"},"action_id":"c"},
	 {"type":"overflow","action_id":"o","options":[{"text":{"type":"plain_text","text":"One"},"value":"1"},{"text":{"type":"plain_text","text":"Two"},"value":"2"}]},
	 {"type":"static_select","action_id":"s","placeholder":{"type":"plain_text","text":"Pick one"},"option_groups":[{"label":{"type":"plain_text","text":"Group"},"options":[{"text":{"type":"plain_text","text":"First"},"value":"1"}]}]},
	 {"type":"users_select","action_id":"u","placeholder":{"type":"plain_text","text":"Somebody"}},{"type":"datepicker","action_id":"dp","initial_date":"2026-05-01"},{"type":"timepicker","action_id":"tp","initial_time":"10:30"}]},
	{"type":"context","elements":[{"type":"image","image_url":"https://example.com/i.png","alt_text":"icon"},{"type":"mrkdwn","text":"Asked by *alice*"},{"type":"plain_text","text":"digest 1a2b3c4d"}]}]`,
	`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"Bold ","style":{"bold":true}},{"type":"text","text":"italic ","style":{"italic":true}},{"type":"text","text":"code","style":{"code":true}},{"type":"text","text":" at "},{"type":"date","timestamp":1893456000,"format":"{date_long} {time}","fallback":"x"},{"type":"text","text":" "},{"type":"color","value":"#1264a3"},{"type":"text","text":" "},{"type":"emoji","name":"wave"},{"type":"broadcast","range":"here"},{"type":"link","url":"https://example.com","text":"link"}]},
	 {"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"first"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"second"}]}]},
	 {"type":"rich_text_list","style":"ordered","indent":1,"offset":2,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"third"}]}]},
	 {"type":"rich_text_quote","elements":[{"type":"text","text":"quoted"}]},
	 {"type":"rich_text_preformatted","elements":[{"type":"text","text":"if a < b {\n\treturn  \"two  spaces\"\n}"}]}]},
	{"type":"plan","title":"Cleaning up","tasks":[{"type":"task_card","task_id":"1","title":"List files","status":"complete","output":{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"12 files"}]}]}},{"type":"task_card","task_id":"2","title":"Run date","status":"in_progress","details":{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"waiting for approval"}]}]}},{"type":"task_card","task_id":"3","title":"Delete notes.txt","status":"error"},{"type":"task_card","task_id":"4","title":"Report","status":"pending","sources":[{"type":"url","url":"https://example.com","text":"source"}]}]},
	{"type":"table","column_settings":[{"align":"left"},{"align":"right","is_wrapped":true}],"rows":[[{"type":"raw_text","text":"Tool"},{"type":"raw_text","text":"Calls"}],[{"type":"raw_text","text":"shell"},{"type":"raw_number","value":12}]]},
	{"type":"context_actions","elements":[{"type":"feedback_buttons","action_id":"f","positive_button":{"text":{"type":"plain_text","text":"Good"},"value":"+"},"negative_button":{"text":{"type":"plain_text","text":"Bad"},"value":"-"}},{"type":"icon_button","icon":"trash","action_id":"t","text":{"type":"plain_text","text":"Delete"}}]}]`,
	`[{"type":"card","title":{"type":"mrkdwn","text":"A card"},"subtitle":{"type":"plain_text","text":"subtitle"},"body":{"type":"mrkdwn","text":"with *body*"},"actions":[{"type":"button","action_id":"x","text":{"type":"plain_text","text":"Open"}}]},
	{"type":"carousel","elements":[{"type":"card","title":{"type":"plain_text","text":"One"}},{"type":"card","title":{"type":"plain_text","text":"Two"}},{"type":"card","title":{"type":"plain_text","text":"Three"}}]},
	{"type":"container","title":{"type":"plain_text","text":"More"},"is_collapsible":true,"child_blocks":[{"type":"section","text":{"type":"plain_text","text":"inside"}}]},
	{"type":"markdown","text":"## Heading\n\nSome **bold** and *italic* with ` + "`code`" + `.\n\n- one\n- two\n\n1. first\n2. second"},
	{"type":"image","image_url":"https://example.com/i.png","alt_text":"A chart of approvals","title":{"type":"plain_text","text":"Chart"}},
	{"type":"actions","elements":[{"type":"checkboxes","action_id":"c","options":[{"text":{"type":"mrkdwn","text":"*one*"},"value":"1","description":{"type":"plain_text","text":"described"}},{"text":{"type":"plain_text","text":"two"},"value":"2"}]},{"type":"radio_buttons","action_id":"r","options":[{"text":{"type":"plain_text","text":"left"},"value":"1"},{"text":{"type":"plain_text","text":"right"},"value":"2"}]}]},
	{"type":"input","block_id":"in","dispatch_action":true,"label":{"type":"plain_text","text":"Reason"},"hint":{"type":"plain_text","text":"Shown to everyone"},"element":{"type":"plain_text_input","action_id":"p","placeholder":{"type":"plain_text","text":"Because"}}},
	{"type":"data_visualization","title":"Approvals","chart":{"type":"pie","segments":[{"label":"yes","value":7},{"label":"no","value":3}]}}]`,
}
