package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// watchCounters count what the watches of the program do. All phases count.
type watchCounters struct {
	open, opened, synced, events, bookmarks, relists, gone, failed atomic.Int64
	// lastFailure is the text of the last error, for a person.
	lastFailure atomic.Value
}

// watcher follows one collection as an informer of client-go does: the initial objects as events of the watch itself
// (WatchList, the default of client-go since 1.35) or by a list before it, a new watch from the last version when one
// ends, and the whole again after 410.
type watcher struct {
	client    *client
	resource  resource
	namespace string
	name      string
	fields    string
	labels    string
	accept    string
	listFirst bool
	counters  *watchCounters
	// seen is called for each object that is added, modified or deleted. The slices belong to the watcher.
	seen func(kind string, object []byte, arrived time.Time)
	// seenVersion is called for each such object too, in JSON as well.
	seenVersion func(version string, arrived time.Time)
	// opened is called once, when the first initial objects are complete.
	opened func()

	// relist makes every loss of the stream one of the version too, as 410 does.
	relist bool
	// watching counts the watchers whose stream is open and complete. It may be nil.
	watching *atomic.Int64

	version  string // of the next watch; empty: the initial objects are needed
	known    string // the last version that was seen, which initial objects must not be older than
	isOpen   bool
	counted  bool
	received int  // events and bookmarks
	initial  bool // the initial objects are arriving, whose versions have no order
}

var errGone = errors.New("resource version is gone")

// follow watches until the context ends.
// Upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go, ListAndWatchWithContext, watch, isWatchErrorRetriable.
func (w *watcher) follow(ctx context.Context) {
	const first = 800 * time.Millisecond
	wait := first
	for ctx.Err() == nil {
		begun, events := time.Now(), w.received
		err := w.once(ctx)
		w.settle(false)
		if w.relist {
			w.version = ""
		}
		if ctx.Err() != nil {
			return
		}
		lasted := time.Since(begun)
		if err == nil && (lasted > time.Second || w.received > events) {
			continue // the server ended the watch, which begins again at once
		}
		var status *statusError
		switch {
		case errors.Is(err, errGone) || hasCode(err, 410):
			w.counters.gone.Add(1)
			if w.version == "" {
				w.known = ""
			}
			w.version = ""
		case err != nil:
			w.counters.failed.Add(1)
			w.counters.lastFailure.Store(fmt.Sprintf("%s %s: %v", w.resource.plural, w.name, err))
			if errors.As(err, &status) && status.code != 429 && status.code != 500 {
				w.version = "" // client-go begins with the initial objects again
			}
		}
		if lasted > 2*time.Minute {
			wait = first
		}
		if !sleep(ctx, wait+time.Duration(rand.Int64N(int64(wait)))) {
			return
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// settle counts whether the watcher has all objects and an open stream.
func (w *watcher) settle(complete bool) {
	if w.watching == nil || w.counted == complete {
		return
	}
	w.counted = complete
	if complete {
		w.watching.Add(1)
	} else {
		w.watching.Add(-1)
	}
}

// once opens a watch, and reads it until it ends.
func (w *watcher) once(ctx context.Context) error {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}
	query.Set("timeoutSeconds", strconv.Itoa(300+rand.IntN(300)))
	w.narrow(query)
	verb := "WATCH"
	switch {
	case w.version != "":
		query.Set("resourceVersion", w.version)
	case w.listFirst:
		if err := w.list(ctx); err != nil {
			return err
		}
		query.Set("resourceVersion", w.version)
	default:
		verb = "WATCHLIST"
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
		if w.known != "" {
			query.Set("resourceVersion", w.known)
		}
	}
	ask := &request{verb: verb, resource: w.resource, namespace: w.namespace, name: w.name, query: query, accept: w.accept}
	w.initial = verb == "WATCHLIST"
	sent := time.Now()
	stream, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := w.client.send(stream, ask)
	if (verb == "WATCH" || err != nil) && ctx.Err() == nil {
		w.client.note(ask, sent, time.Since(sent), failureOf(err))
	}
	if err != nil {
		return err
	}
	if verb == "WATCHLIST" && w.isOpen {
		w.counters.relists.Add(1)
	}
	defer response.Body.Close()
	w.counters.opened.Add(1)
	w.counters.open.Add(1)
	defer w.counters.open.Add(-1)
	if verb == "WATCH" {
		w.sync()
	}
	ended := func() {
		w.client.note(ask, sent, time.Since(sent), "")
		w.sync()
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), protobuf) {
		err = w.frames(response.Body, ended)
	} else {
		err = w.lines(response.Body, ended)
	}
	if utilnet.IsProbableEOF(err) {
		return nil
	}
	return err
}

func (w *watcher) narrow(query url.Values) {
	if w.fields != "" {
		query.Set("fieldSelector", w.fields)
	}
	if w.labels != "" {
		query.Set("labelSelector", w.labels)
	}
}

// sync notes that the initial objects are complete.
func (w *watcher) sync() {
	w.settle(true)
	if !w.isOpen {
		w.isOpen = true
		w.counters.synced.Add(1)
		if w.opened != nil {
			w.opened()
		}
	}
}

// list asks for the initial objects. Their content is not used.
func (w *watcher) list(ctx context.Context) error {
	query := url.Values{"resourceVersion": {"0"}}
	if w.known != "" {
		query.Set("resourceVersion", w.known)
	}
	w.narrow(query)
	ask := &request{verb: "LIST", resource: w.resource, namespace: w.namespace, name: w.name, query: query, accept: w.accept}
	body, err := w.client.do(ctx, ask, time.Now())
	if err != nil {
		return err
	}
	if w.isOpen {
		w.counters.relists.Add(1)
	}
	w.version, _ = listOf(body)
	if w.version == "" {
		list := metav1.PartialObjectMetadataList{}
		if err := json.Unmarshal(body, &list); err != nil {
			return err
		}
		w.version = list.ResourceVersion
	}
	return nil
}

// frames reads a watch in protobuf: frames with four bytes of length, each a WatchEvent.
func (w *watcher) frames(body io.Reader, ended func()) error {
	header := make([]byte, 4)
	var frame []byte
	for {
		if _, err := io.ReadFull(body, header); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint32(header))
		if cap(frame) < length {
			frame = make([]byte, length)
		}
		frame = frame[:length]
		if _, err := io.ReadFull(body, frame); err != nil {
			return err
		}
		arrived := time.Now()
		var kind, envelope []byte
		fields(frame, func(number protowire.Number, content []byte) bool {
			if number == 1 {
				kind = content
			} else if number == 2 {
				envelope = firstField(content, 1)
			}
			return true
		})
		object, ok := unwrap(envelope)
		if !ok {
			return fmt.Errorf("a frame of %d bytes is not an event", length)
		}
		if err := w.event(string(kind), object, arrived, ended); err != nil {
			return err
		}
	}
}

func (w *watcher) event(kind string, object []byte, arrived time.Time, ended func()) error {
	if kind == "ERROR" {
		status := metav1.Status{}
		_ = status.Unmarshal(object)
		return w.rejected(status)
	}
	about := metaOf(object)
	w.saw(string(about.resourceVersion), about.initialEventsEnd)
	if kind == "BOOKMARK" {
		w.counters.bookmarks.Add(1)
		if about.initialEventsEnd {
			ended()
		}
		return nil
	}
	w.counters.events.Add(1)
	if w.seen != nil {
		w.seen(kind, object, arrived)
	}
	if w.seenVersion != nil {
		w.seenVersion(string(about.resourceVersion), arrived)
	}
	return nil
}

// saw notes the version of an event. Those of initial objects do not count, except that of the bookmark after them.
func (w *watcher) saw(version string, complete bool) {
	w.received++
	w.initial = w.initial && !complete
	if !w.initial {
		w.version, w.known = version, version
	}
}

func (w *watcher) rejected(status metav1.Status) error {
	if status.Code == 410 {
		return errGone
	}
	return &statusError{code: int(status.Code), message: status.Message}
}

// lines reads a watch in JSON, which custom resources have. Only metadata is decoded.
func (w *watcher) lines(body io.Reader, ended func()) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(body, 4096))
	for {
		event := struct {
			Type   string
			Object struct {
				Metadata struct {
					ResourceVersion string            `json:"resourceVersion"`
					Annotations     map[string]string `json:"annotations"`
				} `json:"metadata"`
				Code    int32  `json:"code"`
				Message string `json:"message"`
			}
		}{}
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		complete := event.Object.Metadata.Annotations[string(endOfInitialEvents)] == "true"
		switch event.Type {
		case "ERROR":
			return w.rejected(metav1.Status{Code: event.Object.Code, Message: event.Object.Message})
		case "BOOKMARK":
			w.counters.bookmarks.Add(1)
			if complete {
				ended()
			}
		default:
			w.counters.events.Add(1)
			if w.seenVersion != nil {
				w.seenVersion(event.Object.Metadata.ResourceVersion, time.Now())
			}
		}
		w.saw(event.Object.Metadata.ResourceVersion, complete)
	}
}
