package devslack

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// menuCard is a card with a menu, as a card of ours is.
func menuCard(words string) []slack.Block {
	approve := slack.NewButtonBlockElement("approve", "ask-1", plainObject("Approve"))
	approve.Style, approve.AccessibilityLabel = slack.StylePrimary, "Approve: "+words
	menu := slack.NewOverflowBlockElement("menu",
		slack.NewOptionBlockObject("review", plainObject("Review Full Request"), nil),
		slack.NewOptionBlockObject("deny_reason", plainObject("Deny with Reason…"), plainObject("Your words reach the model")))
	return []slack.Block{
		slack.NewSectionBlock(plainObject("Run "+words+"?"), nil, nil), codeBlock(words),
		slack.NewActionBlock("ask", approve, slack.NewButtonBlockElement("deny", "ask-1", plainObject("Deny")), menu),
	}
}

// reasonModal asks for words, with every usual kind of input.
func reasonModal(card string) slack.ModalViewRequest {
	option := func(value, text string) *slack.OptionBlockObject {
		return slack.NewOptionBlockObject(value, plainObject(text), nil)
	}
	number := slack.NewNumberInputBlockElement(nil, "minutes", false)
	number.MinValue, number.MaxValue = "1", "60"
	minutes := slack.NewInputBlock("minutes", plainObject("Minutes"), plainObject("At most 60."), number).WithOptional(true)
	return slack.ModalViewRequest{Type: slack.VTModal, CallbackID: "deny", PrivateMetadata: card, NotifyOnClose: true,
		Title: plainObject("Deny with a reason"), Submit: plainObject("Deny"), Close: plainObject("Back"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock("reason", plainObject("Reason"), plainObject("It is shown on the card."), slack.NewPlainTextInputBlockElement(nil, "text").WithMultiline(true)),
			minutes,
			slack.NewInputBlock("how", plainObject("How"), nil, slack.NewRadioButtonsBlockElement("how", option("once", "This time"), option("always", "Always"))).WithOptional(true),
			slack.NewInputBlock("tell", plainObject("Tell"), nil, slack.NewCheckboxGroupsBlockElement("tell", option("alice", "Alice"), option("bob", "Bob"))).WithOptional(true),
			slack.NewInputBlock("where", plainObject("Where"), nil, slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainObject("Anywhere"), "where", option("here", "Here"), option("there", "There"))).WithOptional(true),
		}}}
}

// menuBot answers like a bot whose cards have menus, with a Home tab, and with a
// reaction to everything that mentions it.
func menuBot(s *stage, client *socketmode.Client, event socketmode.Event) {
	fail := func(err error) {
		if err != nil {
			s.t.Errorf("bot: %v", err)
		}
	}
	switch data := event.Data.(type) {
	case slackevents.EventsAPIEvent:
		fail(client.Ack(*event.Request))
		switch inner := data.InnerEvent.Data.(type) {
		case *slackevents.AppMentionEvent:
			fail(s.api.AddReaction("eyes", slack.NewRefToMessage(inner.Channel, inner.TimeStamp)))
			_, _, err := s.api.PostMessage(inner.Channel, slack.MsgOptionText("Run date?", false), slack.MsgOptionBlocks(menuCard("date")...), slack.MsgOptionTS(inner.TimeStamp))
			fail(err)
		case *slackevents.AppHomeOpenedEvent:
			if inner.Tab == "home" {
				_, err := s.api.PublishView(inner.User, homeView("Revoke"), "")
				fail(err)
			}
		}
	case slack.SlashCommand:
		fail(client.Ack(*event.Request, map[string]any{"response_type": "ephemeral", "text": "Nothing waits: " + data.Text}))
	case slack.InteractionCallback:
		if data.Type == slack.InteractionTypeViewSubmission && len(data.View.State.Values["reason"]["text"].Value) < 5 {
			fail(client.Ack(*event.Request, slack.NewErrorsViewSubmissionResponse(map[string]string{"reason": "Say a little more, please."})))
			return
		}
		fail(client.Ack(*event.Request))
		fail(s.menuAction(data))
	}
}

func homeView(button string) slack.HomeTabViewRequest {
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{
		slack.NewHeaderBlock(plainObject("Grants")),
		slack.NewSectionBlock(plainObject("Read README.md until 17:00"), nil, slack.NewAccessory(slack.NewButtonBlockElement("revoke", "g-1", plainObject(button)))),
		slack.NewContextBlock("", slack.NewTextBlockObject("mrkdwn", "Used 3 times", false, true))}}}
}

func (s *stage) menuAction(data slack.InteractionCallback) error {
	if data.Type == slack.InteractionTypeMessageAction {
		_, err := s.api.PostEphemeral(data.Channel.ID, data.User.ID, slack.MsgOptionText("About: "+data.Message.Text, false))
		return err
	}
	if data.Type == slack.InteractionTypeViewSubmission {
		words := "Denied by <@" + data.User.ID + ">: " + data.View.State.Values["reason"]["text"].Value
		_, _, _, err := s.api.UpdateMessage(s.channel("general"), data.View.PrivateMetadata, slack.MsgOptionText(words, false),
			slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", words, false, true), nil, nil)))
		return err
	}
	if data.Type != slack.InteractionTypeBlockActions {
		return nil
	}
	switch action := data.ActionCallback.BlockActions[0]; action.ActionID {
	case "menu":
		_, err := s.api.OpenView(data.TriggerID, reasonModal(data.Container.MessageTs))
		return err
	case "revoke":
		_, err := s.api.PublishView(data.User.ID, homeView("Revoked"), "")
		return err
	case "approve":
		_, _, _, err := s.api.UpdateMessage(data.Channel.ID, data.Container.MessageTs, slack.MsgOptionText("Approved", false),
			slack.MsgOptionBlocks(slack.NewSectionBlock(plainObject("Approved."), nil, nil)))
		return err
	}
	return nil
}

// installPage gives the app of the page what the features need.
func (s *stage) installPage(change func(*App)) {
	app := DefaultApp()
	app.Commands, app.Usage = []string{"/approvals"}, map[string]Usage{"/approvals": {"What waits, and what is running", "[mine|all|grants|help]"}}
	app.Shortcuts = []Shortcut{{"Ask about this", "ask_about", "Asks the agent about a message", "message"}}
	if change != nil {
		change(&app)
	}
	s.srv.InstallApp(app)
}

func (s *stage) keys(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		s.do(chromedp.KeyEvent(key))
	}
}

func (s *stage) back() { // Shift and Tab
	s.t.Helper()
	s.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
}

// focused waits for the focus to be on what the selector names.
func (s *stage) focused(selector string) {
	s.t.Helper()
	s.until(`document.activeElement.matches(` + quote(selector) + `)`)
}

// tabTo presses Tab until the focus is on what the selector names. On its way
// the focus can always be seen.
func (s *stage) tabTo(selector string) {
	s.t.Helper()
	for range 60 {
		if s.eval(`document.activeElement.matches(`+quote(selector)+`)`) == true {
			return
		}
		s.keys(kb.Tab)
		if s.eval(`(() => { const e = document.activeElement; return e === document.body || !e.matches(":focus-visible") || (getComputedStyle(e).outlineStyle === "none" && !e.matches(".composer-text, .menu button")); })()`) == true {
			s.t.Errorf("the focus can't be seen: %v", s.eval(`document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	s.t.Fatalf("Tab never gets to %s; it is on %v", selector, s.eval(`document.activeElement.outerHTML.slice(0, 200)`))
}

// A person who has only a keyboard does all that there is to do.
func testKeyboard(s *stage) {
	s.installPage(nil)
	s.keys(kb.F6)
	s.focused(`[data-testid="user-switch"]`)
	s.tabTo(`[data-testid="keys"]`)
	s.keys(kb.Enter)
	s.see("keys-dialog", "F6")
	s.shot("keys")
	s.keys(kb.Escape)
	s.focused(`[data-testid="keys"]`)
	s.back()
	s.focused(`[data-testid="user-switch"]`)
	s.keys(kb.F6, kb.F6)
	s.focused(`[data-testid="messages"]`)
	s.keys(kb.F6)
	s.focused(`[data-testid="composer-input"]`)
	for range 2 {
		s.do(chromedp.KeyEvent("@approvalbot run it" + kb.Enter))
	}
	s.until(`document.querySelectorAll('[data-testid="replies"]').length === 2`)
	s.until(`document.querySelectorAll('[data-testid="reaction"]').length === 2`)
	if got := s.eval(`document.querySelector('[data-testid="reaction"]').getAttribute("aria-label")`); got != "approvalbot reacted with :eyes:" {
		s.t.Errorf("the reaction is called %q", got)
	}
	s.keyboardApproves()
	s.keyboardDenies()
	s.keyboardShortcut()
	s.keyboardElsewhere()
}

// To the first message, into its thread, and Approve.
func (s *stage) keyboardApproves() {
	s.t.Helper()
	s.do(chromedp.KeyEvent(kb.F6, chromedp.KeyModifiers(chromedp.ModifierShift)))
	s.focused(`[data-testid="messages"]`)
	s.keys(kb.Home)
	s.focused(`[data-testid="message"]`)
	s.tabTo(`[data-testid="replies"]`)
	s.keys(kb.Enter)
	s.focused(`[data-testid="reply-input"]`)
	s.do(chromedp.KeyEvent(kb.F6, chromedp.KeyModifiers(chromedp.ModifierShift)))
	s.keys(kb.End)
	s.focused(inThread + `[data-testid="message"]`)
	s.tabTo(`[data-action-id="approve"]`)
	if got := s.eval(`document.activeElement.getAttribute("aria-label")`); got != "Approve: date" {
		s.t.Errorf("the button is called %q", got)
	}
	s.shot("keyboard-focus")
	s.keys(kb.Enter)
	s.see("thread", "Approved.")
	s.focused(inThread + `[data-testid="message"]`)
	s.keys(kb.Escape)
	s.focused(`[data-testid="replies"]`)
}

// Through the menu into a form, out of it again, and through it to the end.
func (s *stage) keyboardDenies() {
	s.t.Helper()
	s.keys(kb.Tab) // the menu of the message
	s.tabTo(`[data-testid="replies"]`)
	s.keys(kb.Enter)
	s.focused(`[data-testid="reply-input"]`)
	s.do(chromedp.KeyEvent(kb.F6, chromedp.KeyModifiers(chromedp.ModifierShift)))
	s.keys(kb.End)
	s.tabTo(`[data-action-id="menu"]`)
	s.keys(kb.Enter)
	s.focused(`[role="menuitem"][data-value="review"]`)
	s.shot("menu")
	s.keys(kb.ArrowUp)
	s.focused(`[role="menuitem"][data-value="deny_reason"]`)
	s.keys("r")
	s.focused(`[role="menuitem"][data-value="review"]`)
	s.keys(kb.Escape)
	s.focused(`[data-action-id="menu"]`)
	s.keys(kb.ArrowDown, kb.ArrowDown, kb.Enter)
	s.focused(`[data-testid="modal"] [data-action-id="text"]`)
	s.shot("form")
	s.keys(kb.Escape)
	s.until(`!document.querySelector('[data-testid="modal"]').open`)
	s.focused(`[data-action-id="menu"]`)

	s.keys(kb.ArrowUp, kb.Enter)
	s.focused(`[data-testid="modal"] [data-action-id="text"]`)
	for range 30 { // the focus stays in the form
		s.keys(kb.Tab)
		if s.eval(`document.activeElement === document.body || document.querySelector('[data-testid="modal"]').contains(document.activeElement)`) != true {
			s.t.Fatalf("the focus has left the form for %v", s.eval(`document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	s.tabTo(`[data-testid="modal"] [data-action-id="text"]`)
	for name, want := range map[string]string{"text": "Reason", "minutes": "Minutes", "how": "How", "tell": "Tell", "where": "Where"} {
		called := fmt.Sprintf(`(() => { const e = document.querySelector('[data-testid="modal"] [data-action-id=%q]'); return document.getElementById(e.getAttribute("aria-labelledby"))?.textContent; })()`, name)
		if got := s.eval(called); got != want && got != want+" (optional)" {
			s.t.Errorf("the field %s is called %v", name, got)
		}
	}
	s.keys("n", "o")
	s.tabTo(`[data-testid="modal"] [data-action-id="minutes"]`)
	s.keys("5")
	s.tabTo(`[data-testid="modal"] input[type="radio"]`)
	s.keys(" ", kb.ArrowDown)
	s.tabTo(`[data-testid="modal"] input[type="checkbox"]`)
	s.keys(" ")
	s.tabTo(`[data-testid="modal"] select`)
	s.keys(kb.ArrowDown)
	s.tabTo(`[data-testid="modal-submit"]`)
	s.keys(kb.Enter)
	s.see("input-error", "Say a little more, please.")
	s.focused(`[data-action-id="text"][aria-invalid="true"]`)
	s.shot("form-error")
	s.keys(kb.End, " ", "w", "a", "y")
	s.tabTo(`[data-testid="modal-submit"]`)
	s.keys(kb.Enter)
	s.see("thread", "Denied by @alice: no way")
	s.until(`!document.querySelector('[data-testid="modal"]').open`)
	s.focused(inThread + `[data-testid="message"]`)
	s.keys(kb.Escape)
	s.focused(`[data-testid="replies"]`)
}

// The menu of a message.
func (s *stage) keyboardShortcut() {
	s.t.Helper()
	s.tabTo(`[data-testid="message-menu"]`)
	s.keys(kb.Enter)
	s.focused(`[data-testid="shortcut"]`)
	s.shot("message-menu")
	s.keys(kb.Enter)
	s.see("messages", "About: @approvalbot run it")
	s.see("messages", "Only visible to you")
}

// The Home tab, and a slash command.
func (s *stage) keyboardElsewhere() {
	s.t.Helper()
	s.keys(kb.F6) // the composer
	s.focused(`[data-testid="composer-input"]`)
	s.keys("/")
	s.see("suggestion", "/approvals")
	s.shot("commands")
	s.keys(kb.Enter)
	s.until(`document.querySelector('[data-testid="composer-input"]').value === "/approvals "`)
	s.do(chromedp.KeyEvent("mine" + kb.Enter))
	s.see("messages", "Nothing waits: mine")

	s.keys(kb.F6, kb.F6)
	s.focused(`[data-testid="channel-link"]`)
	s.tabTo(`[data-testid="channel-link"][data-kind="im"]`)
	s.keys(kb.Enter)
	s.tabTo(`[data-testid="tab-messages"]`)
	s.keys(kb.ArrowLeft)
	s.see("home", "Grants")
	s.focused(`[data-testid="tab-home"]`)
	s.shot("home-grants")
	s.tabTo(`[data-action-id="revoke"]`)
	s.keys(kb.Enter)
	s.see("home", "Revoked")
	s.focused(`[data-action-id="revoke"]`) // it is there still, by another name
	s.back()
	s.focused(`[data-testid="tab-home"]`)
}

// Files go with a message, and are there to be looked at.
func testFiles(s *stage) {
	const attach = `(() => { const list = new DataTransfer(); list.items.add(new File(["a,b\n1,2\n"], "numbers.csv", { type: "text/csv" })); list.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], "dot.png", { type: "image/png" }));
		const input = document.querySelector('[data-testid="composer-file"]'); input.files = list.files; input.dispatchEvent(new Event("change")); return true; })()`
	s.eval(fmt.Sprintf(attach, "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
	s.see("chip", "numbers.csv")
	s.shot("files-chosen")
	s.say("what is in these?")
	s.see("file", "numbers.csv")
	if _, err := chromedp.Run(s.tab, chromedp.Evaluate[bool](`document.querySelector('[data-testid="file"] img').decode().then(() => true)`, chromedp.EvalAwaitPromise)); err != nil {
		s.t.Errorf("the picture isn't shown: %v", err)
	}
	if got := s.eval(`document.querySelectorAll('[data-testid="chip"]').length`); got != float64(0) {
		s.t.Errorf("%v files are still chosen", got)
	}
	s.shot("files")
	messages, err := s.srv.Messages(s.channel("general"), "")
	if err != nil || len(messages) != 1 || messages[0].Subtype != "file_share" || len(messages[0].Files) != 2 || messages[0].Files[0].Size != 8 {
		s.t.Errorf("%s, %v", encode(messages), err)
	}
}

// The assistant's pane: prompts in the DM, a chat with a title and a status, and
// a Stop.
func testAssistant(s *stage) {
	s.installPage(func(app *App) {
		app.AgentView, app.Prompts = true, []Prompt{{"Read the README", "read README.md"}, {"List files", "run `ls -la`"}}
	})
	if s.view.phone {
		s.press("menu")
	}
	s.eval(`document.querySelector('[data-testid="channel-link"][data-kind="im"]').click()`) // the list is redrawn, because the app is installed anew
	s.see("prompts", "Read the README")
	s.shot("prompts")
	s.press("new-chat")
	s.until(`!document.querySelector('[data-testid="thread"]').hidden`)
	im := s.eval(`location.hash.split("/")[1]`).(string)
	thread := s.eval(`location.hash.split("/")[2]`).(string)
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: im, ThreadTS: thread, Title: "Begin with"}
	prompts.AddPrompt("What can you do?", "what can you do")
	if err := s.api.SetAssistantThreadsSuggestedPrompts(prompts); err != nil {
		s.t.Fatal(err)
	}
	s.see("thread-prompts", "What can you do?")
	s.shot("chat")
	s.click(`[data-testid="thread-prompts"] [data-testid="prompt"]`)
	s.see("thread-messages", "what can you do")
	s.until(`document.querySelector('[data-testid="thread-prompts"]').hidden`)
	if err := s.api.SetAssistantThreadsTitle(slack.AssistantThreadsSetTitleParameters{ChannelID: im, ThreadTS: thread, Title: "Abilities"}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.api.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{ChannelID: im, ThreadTS: thread, Status: slack.AgentSessionStatusProcessing}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: im, ThreadTS: thread, Status: "is reading README.md…"}); err != nil {
		s.t.Fatal(err)
	}
	s.see("thread-title", "Abilities")
	s.see("typing", "approvalbot is reading README.md…")
	s.shot("status")
	s.press("agent-stop")
	if !s.view.phone {
		s.keys(kb.Escape)
		s.see("channel-typing", "approvalbot is reading README.md…")
	}
}

// A link to a message leads to it, within the page.
func testPermalink(s *stage) {
	s.say("@approvalbot run it")
	s.see("replies", "1 reply")
	ts := s.firstTS()
	messages, err := s.srv.Messages(s.channel("general"), ts)
	if err != nil || len(messages) != 2 {
		s.t.Fatal(messages, err)
	}
	link, err := s.api.GetPermalink(&slack.PermalinkParameters{Channel: s.channel("general"), Ts: messages[1].TS})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := s.api.PostMessage(s.channel("general"), slack.MsgOptionText("It waits <"+link+"|in its thread>.", false)); err != nil {
		s.t.Fatal(err)
	}
	s.see("permalink", "in its thread")
	s.press("permalink")
	s.until(`!document.querySelector('[data-testid="thread"]').hidden`)
	s.focused(inThread + `[data-ts="` + messages[1].TS + `"].looked-at`)
}

func TestPageByKeyboard(t *testing.T) {
	browser := startBrowser(t)
	t.Run("keyboard", func(t *testing.T) { testKeyboard(newStage(t, browser, desktop, menuBot)) })
	for _, view := range []viewport{desktop, phone} {
		t.Run(view.name, func(t *testing.T) {
			t.Run("files", func(t *testing.T) { testFiles(newStage(t, browser, view, nil)) })
			t.Run("assistant", func(t *testing.T) { testAssistant(newStage(t, browser, view, nil)) })
			t.Run("permalink", func(t *testing.T) { testPermalink(newStage(t, browser, view, menuBot)) })
		})
	}
}

// A window in which there is nothing to enter opens at its top, however long it is: not at its first button, which stands
// below what nobody has read then, and which Enter would press.
func TestPageLongWindow(t *testing.T) {
	review := func(s *stage, client *socketmode.Client, event socketmode.Event) {
		if event.Request != nil {
			_ = client.Ack(*event.Request) // a lost one shows as a window that doesn't open
		}
		data, ok := event.Data.(slack.InteractionCallback)
		if !ok {
			return
		}
		blocks := make([]slack.Block, 60, 61)
		for i := range blocks {
			blocks[i] = slack.NewSectionBlock(plainObject(fmt.Sprintf("Part %d", i+1)), nil, nil)
		}
		blocks = append(blocks, slack.NewActionBlock("", slack.NewButtonBlockElement("approve", "1", plainObject("Approve"))))
		_, err := s.api.OpenView(data.TriggerID, slack.ModalViewRequest{Type: slack.VTModal, Title: plainObject("Review"), Blocks: slack.Blocks{BlockSet: blocks}})
		if err != nil {
			t.Errorf("bot: %v", err)
		}
	}
	s := newStage(t, startBrowser(t), phone, review)
	_, _, err := s.api.PostMessage(s.channel("general"), slack.MsgOptionText("Long", false),
		slack.MsgOptionBlocks(slack.NewActionBlock("", slack.NewButtonBlockElement("review", "1", plainObject("Review")))))
	if err != nil {
		t.Fatal(err)
	}
	s.see("message", "Review")
	s.click(`[data-action-id="review"]`)
	s.focused(`[data-testid="modal"] .dialog-body`)
	if top := s.eval(`document.querySelector('[data-testid="modal"] .dialog-body').scrollTop`); top != 0.0 {
		t.Errorf("the window is scrolled by %v", top)
	}
	s.tabTo(`[data-testid="modal"] [data-action-id="approve"]`)
}
