package language

// recorded are sentences of the journal that [Language.Recorded] translates: nobody asks for them as a constant.
var recorded = []string{
	// tools.Demands.Why, as a policy says it
	"it can't be taken back",
	// why a command can't be taken apart
	"it is too long to be taken apart", "it isn't valid UTF-8", "it contains a character that can't be seen", "it is nested too deeply",
}
