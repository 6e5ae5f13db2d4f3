// Prepares this VM for its scheduled events, approves them, and recovers from them.
// Needs no modules: `go build handler.go`. What it has done is in $STATE_DIRECTORY, which systemd sets.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// --- your part ----------------------------------------------------------------------------------
// Either may run again after a crash, so running it twice must do no harm.

// prepare drains, checkpoints, fails over. If it fails it is tried again, and the event is not approved.
func prepare(kind, id string) error {
	log.Printf("preparing for %s %s", kind, id)
	return nil
}

// recoverFrom accepts work again. It also runs after an event that was canceled.
func recoverFrom(kind, id string) error {
	log.Printf("recovering from %s %s", kind, id)
	return nil
}

// --- the service --------------------------------------------------------------------------------

const (
	events  = "/metadata/scheduledevents?api-version=2020-07-01"
	ownName = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
	largest = 1_000_000
)

// The first read switches scheduled events on, which takes up to two minutes.
const firstPatience, patience = 130 * time.Second, 15 * time.Second

// A failure may be temporary. The service may say when to try again.
type failure struct {
	error
	retryAfter time.Duration
}

type service struct {
	endpoint string
	client   *http.Client
}

func newService(endpoint string) *service {
	return &service{endpoint, &http.Client{
		// No proxy, whatever the environment says: the service is this machine's own.
		Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask returns the body of a complete 200, and an error for anything else.
func (s *service) ask(path string, within time.Duration, body []byte) ([]byte, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequest(method, s.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Metadata", "true")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	s.client.Timeout = within
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return nil, failure{fmt.Errorf("the service answered %d", response.StatusCode), time.Duration(seconds) * time.Second}
	}
	return content, nil
}

// event has the fields that are needed. Other fields, and types not known here, do no harm. NotBefore, which is blank
// in an event that has started, is not needed.
type event struct {
	ID        string   `json:"EventId"`
	Type      string   `json:"EventType"`
	Status    string   `json:"EventStatus"`
	Resources []string `json:"Resources"`
}

// Names are the same in any letter case.
func (e event) names(vm string) bool {
	for _, name := range e.Resources {
		if strings.EqualFold(name, vm) {
			return true
		}
	}
	return false
}

// An approval counts for all VMs that an event names, so only the first of them sends it.
func (e event) isLedBy(vm string) bool {
	return len(e.Resources) > 0 && strings.EqualFold(e.Resources[0], vm)
}

// The id becomes the name of a file.
var idForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// readDocument fails unless the document is complete: events missing from half a document
// may still be to come.
func readDocument(body []byte) (map[string]event, error) {
	var document struct {
		DocumentIncarnation *int64
		Events              *[]event
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	if document.DocumentIncarnation == nil || document.Events == nil {
		return nil, errors.New("that is not a document of events")
	}
	found := map[string]event{}
	for _, each := range *document.Events {
		if !idForm.MatchString(each.ID) {
			return nil, errors.New("an event has no id")
		}
		found[strings.ToUpper(each.ID)] = each
	}
	return found, nil
}

// --- the journal: one file for each event, with what has been done and the event's type ---------

type entry struct{ Phase, Type string }

type journal struct {
	folder  string
	entries map[string]entry
}

func openJournal(folder string) (*journal, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "[^.]*"))
	if err != nil {
		return nil, err
	}
	entries := map[string]entry{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var found entry
		if err := json.Unmarshal(content, &found); err != nil {
			return nil, err
		}
		entries[filepath.Base(file)] = found
	}
	return &journal{folder, entries}, nil
}

// note returns when it is on disk, in one piece.
func (j *journal) note(id, phase, kind string) error {
	content, err := json.Marshal(entry{phase, kind})
	if err != nil {
		return err
	}
	draft := filepath.Join(j.folder, "."+id)
	file, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(draft, filepath.Join(j.folder, id)); err != nil {
		return err
	}
	j.entries[id] = entry{phase, kind}
	log.Printf("%s: %s %s", phase, kind, id)
	return nil
}

func (j *journal) remove(id string) error {
	delete(j.entries, id)
	log.Printf("over: %s", id)
	return os.Remove(filepath.Join(j.folder, id))
}

// --- what to do ---------------------------------------------------------------------------------

type handler struct {
	service  *service
	journal  *journal
	me       string
	patience time.Duration
	// The outcome of prepare, by event.
	prepared map[string]chan error
}

// isPrepared prepares in the background: the next event may leave less time than this one takes. It starts again
// if preparing failed, or if this program was killed meanwhile.
func (h *handler) isPrepared(id, kind string) (bool, error) {
	outcome, isRunning := h.prepared[id]
	if !isRunning {
		outcome = make(chan error, 1)
		h.prepared[id] = outcome
		go func() { outcome <- prepare(kind, id) }()
	}
	select {
	case err := <-outcome:
		delete(h.prepared, id)
		return err == nil, err
	case <-time.After(50 * time.Millisecond):
		return false, nil
	}
}

func (h *handler) attend(id string, e event) error {
	phase := h.journal.entries[id].Phase
	if phase == "" {
		if err := h.journal.note(id, "preparing", e.Type); err != nil {
			return err
		}
		phase = "preparing"
	}
	if phase == "preparing" {
		if done, err := h.isPrepared(id, e.Type); err != nil || !done {
			return err
		}
		if err := h.journal.note(id, "prepared", e.Type); err != nil {
			return err
		}
		phase = "prepared"
	}
	// An event that has started needs no approval; it may never have been Scheduled.
	if phase != "prepared" || e.Status != "Scheduled" || !e.isLedBy(h.me) {
		return nil
	}
	// Recorded first: after a crash it is not sent twice. At worst the event waits for its NotBefore.
	if err := h.journal.note(id, "approving", e.Type); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"StartRequests":[{"EventId":"%s"}]}`, id)
	if _, failed := h.service.ask(events, patience, []byte(body)); failed != nil {
		if err := h.journal.note(id, "prepared", e.Type); err != nil {
			return err
		}
		return failed
	}
	return h.journal.note(id, "approved", e.Type)
}

// recoverFromEnded: an event that the document no longer has is over. Only a complete document can tell.
func (h *handler) recoverFromEnded(current map[string]event) error {
	for id, each := range h.journal.entries {
		if _, isOpen := current[id]; isOpen {
			continue
		}
		if outcome, isRunning := h.prepared[id]; isRunning {
			<-outcome
			delete(h.prepared, id)
		}
		if err := recoverFrom(each.Type, id); err != nil {
			return err
		}
		if err := h.journal.remove(id); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) look() error {
	body, err := h.service.ask(events, h.patience, nil)
	if err != nil {
		return err
	}
	h.patience = patience
	current, err := readDocument(body)
	if err != nil {
		return err
	}
	if h.me == "" {
		name, err := h.service.ask(ownName, patience, nil)
		if err != nil {
			return err
		}
		h.me = strings.TrimSpace(string(name))
	}
	var failed error
	for id, e := range current {
		if e.names(h.me) {
			// An event that fails must not keep the others waiting.
			if err := h.attend(id, e); err != nil {
				failed = err
			}
		}
	}
	if err := h.recoverFromEnded(current); err != nil {
		return err
	}
	return failed
}

// pauseAfter is twice as long for each failure, but a Spot VM has 30 seconds from notice to eviction.
func pauseAfter(failures int, err error) time.Duration {
	pause := 8 * time.Second
	if failures < 4 {
		pause = time.Second << (failures - 1)
	}
	var told failure
	if errors.As(err, &told) && told.retryAfter > pause {
		pause = told.retryAfter
	}
	if pause > 10*time.Second {
		pause = 10 * time.Second
	}
	return pause
}

func main() {
	endpoint := os.Getenv("METADATA_ENDPOINT")
	if endpoint == "" {
		endpoint = "http://169.254.169.254"
	}
	journal, err := openJournal(filepath.Join(os.Getenv("STATE_DIRECTORY"), "scheduled-events"))
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		os.Exit(0)
	}()
	h := handler{newService(endpoint), journal, "", firstPatience, map[string]chan error{}}
	failures := 0
	for {
		pause := time.Second
		if err := h.look(); err != nil {
			failures++
			pause = pauseAfter(failures, err)
			log.Print(err)
		} else {
			failures = 0
		}
		time.Sleep(pause)
	}
}
