package language

// Cards and what is around them.
var zhCards = map[string]string{}
