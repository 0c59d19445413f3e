package language

// Grants: what is allowed in advance.
var zhGrants = map[string]string{
	"Allow for this thread": "在此消息列中允许",
	"Allow always":          "始终允许",
	"Allow":                 "允许",

	"From now on calls of {tool} start *without asking*, if all of this holds:": "今后对 {tool} 的调用同时满足以下各项时，将*不再询问*，直接执行：",
	"Exactly this call, with exactly these arguments; another one asks":         "与此调用完全相同，参数一字不差；其他调用仍会询问",
	"{argument} is exactly {value}":                                             "{argument} 恰好是 {value}",
	"{argument} may be *anything*, or missing":                                  "{argument} 可以是*任意值*，也可以没有",
	"There is no other argument":                                                "没有其他参数",
	"So it is *every* call with no more than these arguments":                   "也就是说，参数不超出以上各项的*所有*调用",
	"Nobody but {people} asked for it":                                          "仅限 {people} 提出的请求",
	"In *every* conversation that works in the same directory":                  "在*所有*使用同一工作目录的对话中",
	"Only in this conversation":                                                 "仅在此对话中",
	"These may be anything":                                                     "以下参数可以是任意值",
	"For how long":                                                              "有效时间",
	"How often at most":                                                         "最多次数",
	"days":                                                                      "天",
	"times":                                                                     "次",
	"%d of %d uses":                                                             "第 %d 次，共 %d 次",

	"Sending this also approves the request on the card. What the rules deny stays denied. It ends at once when somebody revokes it, and when the tool or the rules change.": "提交后，卡片上的请求也会一并批准。规则禁止的操作依然禁止。一经撤销，或工具、规则有变，即刻失效。",

	"Allowed by the grant of {who}, until {until} ({use})":                                                  "由 {who} 预先允许，有效期至 {until}（{use}）",
	"*Also allowed* from now on, in this conversation, until {until}, {times} at most.":                     "*同时允许*：今后在此对话中，有效期至 {until}，最多 {times}。",
	"*Also allowed* from now on, in every conversation, until {until}, {times} at most.":                    "*同时允许*：今后在所有对话中，有效期至 {until}，最多 {times}。",
	"Please choose one of these.":                                                                           "请从中选择一项。",
	"A whole number from 1 to %d, please.":                                                                  "请输入 1 到 %d 之间的整数。",
	"You can't do that here":                                                                                "你不能在这里这样做",
	"This form is not one of mine. Nothing was granted.":                                                    "这不是我的表单，未作任何允许。",
	"The form could not be opened in time. Nothing was granted; please click again.":                        "未能及时打开表单，未作任何允许，请再次点击。",
	"What it covers has changed with your ticks. Read it again, then send it. Nothing was granted yet.":     "允许的范围已随你的勾选而改变，请重新阅读后再提交。目前未作任何允许。",
	"This request was decided or ended meanwhile, so nothing was granted. The card shows how.":              "此请求已有决定或已结束，因此未作任何允许。结果见卡片。",
	"The arguments were changed meanwhile, so nothing was granted. Close this, and look at the card again.": "参数已被修改，因此未作任何允许。请关闭此窗口，重新查看卡片。",
	"The tool or the rules have changed since this was asked, so nothing can be allowed in advance here. Nothing was decided. You can still approve or deny the request on the card.": "此请求发出后，工具或规则已有变化，因此无法在这里预先允许。未作任何决定，你仍可在卡片上批准或拒绝此请求。",
	"I can't record this, so nothing is approved and nothing granted. Try again.":                                                                                                     "无法记录，因此既未批准，也未作任何允许，请重试。",
	"A call like this can't be allowed in advance in this way. Nothing was granted.":                                                                                                  "此类调用不能这样预先允许，未作任何允许。",
	"Something went wrong on my side, so nothing was granted. Try again.":                                                                                                             "我这边出了问题，因此未作任何允许，请重试。",
}
