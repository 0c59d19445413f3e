package devslack

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/slack-go/slack"
)

// What the page does for somebody who has never seen it.

// A sentence that is tried shows where the answer is: on a wide screen the
// thread opens, anywhere the parent says that somebody waits, until nobody does.
func testTried(s *stage) {
	s.click(`[data-testid="try-sentence"]`)
	s.see("waiting", "Waiting for an answer")
	if s.view.phone {
		s.until(`document.getElementById("app").dataset.pane === "channel"`)
		s.shot("waiting")
		s.openThread()
	} else {
		s.until(`!document.querySelector('[data-testid="thread"]').hidden`)
		s.until(`document.querySelector('` + inThread + `[data-action-id="approve"]')`)
		s.shot("waiting")
	}
	s.click(inThread + `[data-action-id="approve"]`)
	s.see("thread", "Approved by @alice")
	s.until(`!document.querySelector('[data-testid="waiting"]')`)
	if n := s.eval(`document.querySelectorAll('[data-testid="edited"]').length`); n != float64(0) {
		s.t.Error("a card whose blocks were replaced is called edited")
	}
	// A button that stops something is no question.
	stop := slack.NewActionBlock("", slack.NewButtonBlockElement("stop", "1", plainObject("Stop")))
	if _, _, err := s.api.PostMessage(s.channel("general"), slack.MsgOptionText("working", false), slack.MsgOptionBlocks(stop), slack.MsgOptionTS(s.firstTS())); err != nil {
		s.t.Fatal(err)
	}
	s.until(`document.querySelector('` + inThread + `[data-action-id="stop"]')`)
	s.see("replies", "3 replies")
	if n := s.eval(`document.querySelectorAll('[data-testid="waiting"]').length`); n != float64(0) {
		s.t.Error("a single button counts as a question")
	}
}

// Who reads the end of a thread goes on seeing it: the box above grows, a banner
// takes away room, a part is unfolded. Who has scrolled away stays there.
func testEnd(s *stage) {
	s.say("@approvalbot run `date`")
	s.see("replies", "2 replies")
	s.openThread()
	const log = `document.querySelector('[data-testid="thread-messages"]')`
	const atEnd = log + `.scrollHeight - ` + log + `.scrollTop - ` + log + `.clientHeight < 2`
	s.until(atEnd)
	box := s.reply(0)
	s.grow(box, 40)
	s.see("thread-messages", "step 40")
	s.until(atEnd)
	s.shot("grown")
	s.eval(log + `.querySelector("details").open = false`)
	s.settles(atEnd)
	s.eval(log + `.querySelector("details").open = true`)
	s.settles(atEnd)
	s.eval(`document.querySelector('[data-testid="banner"]').hidden = false, document.querySelector('[data-testid="banner"]').style.height = "90px"`)
	s.settles(atEnd)
	s.eval(log + `.scrollTop = 0`)
	s.settles(log + `.scrollTop === 0`)
	s.grow(box, 41)
	s.see("thread-messages", "step 41")
	s.settles(log + `.scrollTop < 40`)
}

// settles checks an expression once the browser has laid out what changed: two
// frames later.
func (s *stage) settles(expression string) {
	s.t.Helper()
	const frames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`
	s.do(chromedp.Evaluate[chromedp.Void](frames, chromedp.EvalAwaitPromise))
	if got := s.eval(expression); got != true {
		s.t.Errorf("not so: %s", expression)
	}
}

// reply is the ts of a reply to the channel's first message.
func (s *stage) reply(n int) string {
	s.t.Helper()
	messages, err := s.srv.Messages(s.channel("general"), s.firstTS())
	if err != nil || len(messages) < n+2 {
		s.t.Fatalf("%d messages, %v", len(messages), err)
	}
	return messages[n+1].TS
}

// grow makes the progress box be of n steps.
func (s *stage) grow(ts string, n int) {
	s.t.Helper()
	tasks := make([]*slack.TaskCardBlock, n)
	for i := range tasks {
		tasks[i] = slack.NewTaskCardBlock(fmt.Sprint(i), fmt.Sprintf("step %d", i+1)).WithStatus(slack.TaskCardStatusComplete)
	}
	if _, _, _, err := s.api.UpdateMessage(s.channel("general"), ts, slack.MsgOptionText("Working", false),
		slack.MsgOptionBlocks(slack.NewPlanBlock("Working on it").WithTasks(tasks...))); err != nil {
		s.t.Fatal(err)
	}
}

// Where the app isn't, the page says so and lets it in. A private channel has
// its own sign everywhere.
func testAbsent(s *stage) {
	for _, way := range []string{"button", "command"} {
		channel := s.channel("random")
		if err := s.srv.Leave(MembershipRequest{User: s.ws.App.BotUserID, Channel: channel}); err != nil {
			s.t.Fatal(err)
		}
		s.eval(`location.hash = "#/` + channel + `"`)
		s.see("absent", "approvalbot is not in random")
		if n := s.eval(`document.querySelectorAll('[data-testid="try-sentence"]').length`); n != float64(0) {
			s.t.Error("it offers sentences that nobody hears")
		}
		s.shot("absent")
		if way == "button" {
			s.press("add-bot")
		} else {
			s.say("/invite @approvalbot")
		}
		s.until(`document.querySelector('[data-testid="absent"]').hidden`)
		s.see("messages", "@approvalbot has joined the channel")
	}
	s.say("/invite somebody")
	s.see("composer", "Whom? /invite @approvalbot")
	private := s.channel("ops-private")
	ts, err := s.srv.SendMessage(MessageRequest{User: s.user("alice"), Channel: private, Text: "see <#" + private + ">"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.eval(`location.hash = "#/` + private + `/` + ts + `"`)
	s.until(`document.querySelector('.thread-place .icon-lock')`)
	s.until(`document.querySelector('[data-testid="thread-messages"] .mention .icon-lock')`)
	title, _ := s.eval(`document.title`).(string)
	label, _ := s.eval(`document.querySelector('[data-testid="composer-input"]').placeholder`).(string)
	if strings.Contains(title+label, "#") {
		s.t.Errorf("a private channel is called %q, %q", title, label)
	}
}

// What the app's manifest switches off isn't there.
func testNoHome(s *stage) {
	s.eval(`location.hash = "#/" + document.querySelector('[data-testid="channel-link"][data-kind="im"]').dataset.channelId`)
	s.until(`document.querySelector('[data-testid="tab-home"]')`)
	app := DefaultApp()
	app.HomeTab = false
	s.srv.InstallApp(app)
	s.until(`!document.querySelector('[data-testid="tab-home"]') && document.querySelector('[data-testid="tab-about"]')`)
	s.shot("no-home")
}

// The ids that rules and settings take are found where Slack has them, in the channel's details, and copied by mouse and
// by keyboard.
func testDetails(s *stage) {
	s.eval(`navigator.clipboard.writeText = (text) => { window.copied = text; return window.forbidden ? Promise.reject(new Error("no")) : Promise.resolve(); }, true`)
	s.press("details")
	s.see("details-dialog", "general")
	group := s.ws.Usergroups[0]
	ids := map[string]string{
		"alice": s.user("alice"), "dora": s.user("dora"), "general": s.channel("general"), "@oncall": group.ID,
	}
	for name, id := range ids {
		row := fmt.Sprintf(`[data-testid="details-row"][data-id="%s"]`, id)
		text, _ := s.eval(fmt.Sprintf(`document.querySelector(%s).textContent`, quote(row))).(string)
		if !strings.Contains(text, name) || !strings.Contains(text, id) {
			s.t.Errorf("the row of %s says %q", name, text)
		}
	}
	if text, _ := s.eval(fmt.Sprintf(`document.querySelector('[data-id="%s"]').textContent`, group.ID)).(string); !strings.Contains(text, "bob, carol") {
		s.t.Errorf("the group doesn't say who is in it: %q", text)
	}
	s.shot("details")
	copyOf := func(id string) string { return fmt.Sprintf(`[data-id="%s"] [data-testid="copy-id"]`, id) }
	s.click(copyOf(s.user("alice")))
	s.until(fmt.Sprintf(`window.copied === %s && document.querySelector(%s).textContent === "Copied"`, quote(s.user("alice")), quote(copyOf(s.user("alice")))))
	label, _ := s.eval(fmt.Sprintf(`document.querySelector(%s).getAttribute("aria-label")`, quote(copyOf(group.ID)))).(string)
	if label != "Copy group ID of @oncall" {
		s.t.Errorf("the button is called %q", label)
	}
	s.do(chromedp.SendKeys(chromedp.CSS(copyOf(group.ID)), kb.Enter))
	s.until(`window.copied === ` + quote(group.ID))

	// Where the browser doesn't let us, the id is selected for the person to copy.
	s.eval(`window.forbidden = true`)
	s.click(copyOf(s.user("bob")))
	s.until(`getSelection().toString() === ` + quote(s.user("bob")))
	s.do(chromedp.KeyEvent(kb.Escape))
	s.until(`!document.querySelector('[data-testid="details-dialog"]') && document.activeElement.dataset.testid === "details"`)

	// A direct message has details, too.
	s.eval(`location.hash = "#/" + document.querySelector('[data-testid="channel-link"][data-kind="im"]').dataset.channelId`)
	s.until(`document.querySelector('[data-testid="tab-about"]')`)
	s.press("details")
	s.see("details-dialog", "approvalbot")
	s.press("details-close")
	s.until(`!document.querySelector('[data-testid="details-dialog"]')`)
}
