package main

import (
	"regexp"
	"strings"
	"testing"

	"approvalbot/internal/language"
)

// The whole program in Chinese: what the journal holds in English words stands on the card in Chinese, too.
func TestCardInChinese(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Language = language.Chinese }, func(w *world) {
		thread := w.ask("alice", "`printf ok > proof.txt`")
		card := w.card(thread)
		mustSay(t, card.text, "需要批准：", "将执行的全部内容：", "printf ok > proof.txt", "为何需要批准：", "shell 可能会更改内容并访问工作区之外，因此需要批准。",
			"请求人：", "可批准的人：", "截止时间：", "不回应即为拒绝。", "sha256:")
		if word := regexp.MustCompile(`(?i)\b(policy|needs|approve|request|expires)\b`).FindString(card.text); word != "" {
			t.Errorf("%q stands on the card:\n%s", word, card.text)
		}
		w.click("bob", card, "deny")
		if text := w.card(thread).text; !strings.Contains(text, "拒绝。") || !strings.Contains(text, "未执行。") {
			t.Errorf("the end of it: %s", text)
		}
	})
}
