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
	// opened is called once, when the first initial objects are complete.
	opened func()

	version string
	isOpen  bool
}

var errGone = errors.New("resource version is gone")

// follow watches until the context ends.
func (w *watcher) follow(ctx context.Context) {
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		begun := time.Now()
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errGone) || hasCode(err, 410) {
			w.counters.gone.Add(1)
			w.version = ""
			continue
		}
		if err == nil {
			continue // the server ended the watch after its timeout
		}
		w.counters.failed.Add(1)
		w.counters.lastFailure.Store(fmt.Sprintf("%s %s: %v", w.resource.plural, w.name, err))
		if time.Since(begun) > time.Minute {
			wait = 100 * time.Millisecond
		}
		// Upstream: client-go/tools/cache/reflector.go, a backoff from 0.8 s to 30 s. The first wait is shorter here, since
		// a kubelet asks for an object of a pod before the node authorizer has seen the pod.
		if !sleep(ctx, wait+time.Duration(rand.Int64N(int64(wait)))) {
			return
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// once opens a watch, and reads it until it ends.
func (w *watcher) once(ctx context.Context) error {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}
	query.Set("timeoutSeconds", strconv.Itoa(300+rand.IntN(300)))
	w.select_(query)
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
		if w.isOpen {
			w.counters.relists.Add(1)
		}
	}
	ask := &request{verb: verb, resource: w.resource, namespace: w.namespace, name: w.name, query: query, accept: w.accept}
	sent := time.Now()
	stream, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := w.client.send(stream, ask)
	if verb == "WATCH" && ctx.Err() == nil {
		w.client.record.request(ask, sent, time.Since(sent), failureOf(err))
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	w.counters.opened.Add(1)
	w.counters.open.Add(1)
	defer w.counters.open.Add(-1)
	if verb == "WATCH" {
		w.sync()
	}
	ended := func() {
		w.client.record.request(ask, sent, time.Since(sent), "")
		w.sync()
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), protobuf) {
		err = w.frames(response.Body, ended)
	} else {
		err = w.lines(response.Body, ended)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (w *watcher) select_(query url.Values) {
	if w.fields != "" {
		query.Set("fieldSelector", w.fields)
	}
	if w.labels != "" {
		query.Set("labelSelector", w.labels)
	}
}

func (w *watcher) sync() {
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
	w.select_(query)
	if w.isOpen {
		w.counters.relists.Add(1)
	}
	ask := &request{verb: "LIST", resource: w.resource, namespace: w.namespace, name: w.name, query: query, accept: w.accept}
	body, err := w.client.do(ctx, ask, time.Now())
	if err != nil {
		return err
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
	w.version = string(about.resourceVersion)
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
	return nil
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
		switch event.Type {
		case "ERROR":
			return w.rejected(metav1.Status{Code: event.Object.Code, Message: event.Object.Message})
		case "BOOKMARK":
			w.counters.bookmarks.Add(1)
			if event.Object.Metadata.Annotations[string(endOfInitialEvents)] == "true" {
				ended()
			}
		default:
			w.counters.events.Add(1)
		}
		w.version = event.Object.Metadata.ResourceVersion
	}
}
