package language

// zhTime are the texts of what happens while nobody answers: reminders, more people, more time, asking again.
var zhTime = map[string]string{
	"*Reminded:* {when}":                   "*已提醒：*{when}",
	"{who} may approve, too, since {when}": "{when} 起，{who} 也可以批准",
	"{who} moved the deadline to {until}":  "{who} 已将截止时间延至 {until}",
	", the latest there can be":            "（不能再延长）",
	"%d more":                              "另外 %d 位",
	" and ":                                "和",
	", ":                                   "、",

	"Still waiting for an answer, %s left: %s":                                                             "仍在等待答复，还剩 %s：%s",
	"Open the request":                                                                                     "打开请求",
	"a direct message":                                                                                     "私信",
	"*Still waiting for an answer*, until {until}:":                                                        "*仍在等待答复*，{until} 截止：",
	"{who}: *still waiting for an answer*, until {until}:":                                                 "{who}：*仍在等待答复*，{until} 截止：",
	"*This waits for your answer*, until {until}. Asked by {asker} in {place}:":                            "*有一项请求等你答复*，{until} 截止。由 {asker} 在 {place} 提出：",
	"Nobody has answered yet, so {who} *may approve this, too*, until {until}:":                            "还没有人答复，因此 {who} *也可以批准*，{until} 截止：",
	"Nobody has answered yet, so *you may approve this, too*, until {until}. Asked by {asker} in {place}:": "还没有人答复，因此*你也可以批准*，{until} 截止。由 {asker} 在 {place} 提出：",
	"Answered by {who}.":                                                                                   "{who} 已答复。",
	"Answered.":                                                                                            "已答复。",
	"Nobody answered.":                                                                                     "无人回应。",
	"This isn't asked any more.":                                                                           "此请求已不再征求批准。",

	"Give Me More Time":           "延长时间",
	"Ask Again":                   "重新请求",
	"Asked again by {who}, {at}.": "{who} 已于 {at} 重新发起请求。",
	"The deadline is as late as it can be, so it stays as it is.":                               "截止时间已不能再延后，保持不变。",
	"I can't record this, so the deadline stays as it is. Try again.":                           "无法记录此操作，截止时间保持不变。请重试。",
	"I can't record this, so nothing was asked again. Try again.":                               "无法记录此操作，没有重新请求。请重试。",
	"This request was answered, so there is nothing to ask again. The card shows how it ended.": "此请求已有答复，无需重新请求。卡片上会显示结果。",
	"This request can't be asked again from here. Ask the agent in the thread.":                 "无法在这里重新发起此请求。请在消息列中直接告诉智能体。",
	"Something went wrong, so nothing was asked again. Please try again.":                       "出了点问题，没有重新请求。请重试。",
	"%s has had this asked again already. Look further down in the thread.":                     "%s 已经重新发起请求，请查看消息列中后面的消息。",
}
