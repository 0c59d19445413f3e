package language

// zhDecide: denials with a reason, the confirmation of what is critical, changed arguments.
var zhDecide = map[string]string{
	"Close":    "关闭",
	"Approval": "审批",
	"Approve":  "批准",
	"Continue": "继续",
	"Yes":      "是",
	"No":       "否",
	"Reason":   "原因",

	"Deny with Reason…": "拒绝并说明原因…",
	"Edit and Approve…": "修改并批准…",
	"Deny with reason":  "拒绝并说明原因",
	"Edit and approve":  "修改并批准",
	"Type it exactly":   "请准确输入",
	"(no name)":         "（无名称）",
	"(nothing)":         "（无）",
	"characters":        "个字符",

	"more arguments":      "个其他参数",
	"more lines":          "行未显示",
	"This is needed.":     "此项必填。",
	"This can't be read.": "无法识别此内容。",

	"What is wrong with it, or what to do instead":                                               "哪里不对，或者应该怎么做",
	"The agent reads it, and it stands on the card.":                                             "智能体会读到，也会显示在卡片上。",
	"The form for your reason didn't open, so nothing is decided yet. Deny alone works at once.": "填写原因的窗口未能打开，因此尚未作出决定。直接点击“拒绝”会立即生效。",
	"{who} denied this already, {at}. Your words were not recorded.":                             "{who} 已于 {at} 拒绝了此请求。你填写的内容未被记录。",

	"Approve: critical risk": "批准：极高风险",
	"The name of what this is about can't be typed. To approve it, type the tool's name: {word}":           "目标名称无法输入。如要批准，请输入工具名称：{word}",
	"To approve this, type what it is about: {word}":                                                       "如要批准，请输入目标名称：{word}",
	"This is not %s, so nothing is approved yet.":                                                          "这不是 %s，因此尚未批准。",
	"The form to approve this didn't open, so nothing is approved. Please click Approve again.":            "批准窗口未能打开，因此尚未批准。请再次点击“批准”。",
	"The risk is critical, so a click is not enough. Click Approve on the card and type what it asks for.": "风险极高，仅点击还不够。请点击卡片上的“批准”，并输入所要求的内容。",

	"%s: it is too long to be changed here and stays as it is.":                                       "%s：内容过长，无法在此修改，将保持不变。",
	"It contains characters that can't be seen, so it can't be changed here and stays as it is.":      "其中含有不可见字符，无法在此修改，将保持不变。",
	"What you send is what is approved, exactly. Whoever approved it before has to look at it again.": "你提交的内容会原样批准。此前批准过的人需要重新查看。",
	"What you send is what is approved and performed, exactly.":                                       "你提交的内容会原样批准并执行。",
	"This has to be a number.":       "此项必须是数字。",
	"This has to be a whole number.": "此项必须是整数。",
	"This has to be valid JSON.":     "此项必须是有效的 JSON。",
	"The form didn't open, so nothing is changed or approved. Please try again.":                                               "窗口未能打开，因此没有修改，也没有批准。请重试。",
	"The form was not filled in right, so nothing is changed or approved. Please try again.":                                   "表单填写有误，因此没有修改，也没有批准。请重试。",
	"Nothing is changed. Change something, or use Approve on the card.":                                                        "没有任何修改。请先修改，或使用卡片上的“批准”。",
	"It is changed and not approved yet: its risk is critical. Click Approve on the card.":                                     "已修改，但尚未批准：其风险极高。请点击卡片上的“批准”。",
	"You changed and approved this: {what}. Still needed: {left}.":                                                             "你已修改并批准：{what}。还需要：{left}。",
	"You changed this: {what}. Like this, others have to approve it. Still needed: {left}.":                                    "你已修改：{what}。修改后需由其他人批准。还需要：{left}。",
	"This request can't be changed in a form. You can approve or deny it as it is, and say in a reason what you want instead.": "此请求无法在表单中修改。你可以按原样批准或拒绝，并在原因中说明你希望怎么做。",

	"Already decided: %s approved this with other arguments, %s. Your click changed nothing.": "已有决定：%s 已批准修改后的内容，%s。你的操作没有生效。",
	"*What was changed:*":              "*修改内容：*",
	"*Changed by* {who}, {at}:":        "*修改者：*{who}，{at}：",
	"It is as it was asked for again.": "已恢复为最初请求的内容。",
	"%s changed this meanwhile, so nothing was decided by you. Look at it again: the card shows it as it is now.": "%s 刚刚修改了此请求，因此你的操作没有生效。请重新查看：卡片显示的是当前内容。",
}
