package devslack

import "net/http"

func pageHandler() http.Handler { return http.NotFoundHandler() }
