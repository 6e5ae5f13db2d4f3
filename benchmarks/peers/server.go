// The same answer from Go's net/http, as a small metadata mock would be written.
package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	document, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/metadata/scheduledevents", func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Metadata"), "true") {
			http.Error(w, `{"error": "Bad request: . Required metadata header not specified"}`, 400)
			return
		}
		if r.URL.Query().Get("api-version") == "" {
			http.Error(w, `{"error": "Bad request. api-version was not specified"}`, 400)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("ETag", `"1"`)
		w.Write(document)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
