package language

// recorded are sentences of the journal that [Language.Recorded] translates: nobody asks for them as a constant.
var recorded = []string{}
