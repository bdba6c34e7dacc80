package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// event takes settings from an event: one made by hand, the input of a schedule, or what EventBridge sends, whose envelope is
// no setting and whose detail is.
func (r *resolver) event(data []byte) error {
	members, err := eventSettings(data)
	if err != nil {
		return err
	}
	byKey, keys := map[string]setting{}, []string{}
	for _, s := range settings() {
		byKey[s.key] = s
		if s.event {
			keys = append(keys, s.key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		s, found := byKey[key]
		if !found {
			return unknown(Event, key, keys)
		}
		if !s.event {
			return &Error{Setting: key, Source: Event, Detail: "can't be set by an event, only by " + s.others()}
		}
		g, err := s.eventValue(members[key])
		if err != nil {
			return &Error{Setting: key, Value: shorten(members[key]), Source: Event, Detail: err.Error()}
		}
		if err := r.take(s, g); err != nil {
			return err
		}
	}
	return nil
}

// eventSettings returns the members that are settings.
func eventSettings(data []byte) (map[string]json.RawMessage, error) {
	members, err := object(data)
	if err != nil {
		return nil, &Error{Setting: "event", Value: shorten(data), Source: Event, Detail: err.Error()}
	}
	_, hasType := members["detail-type"]
	_, hasSource := members["source"]
	if !hasType || !hasSource {
		return members, nil
	}
	detail := members["detail"]
	// EventBridge Scheduler, where no input was set, sends an envelope whose detail is a text of JSON.
	var text string
	if json.Unmarshal(detail, &text) == nil {
		detail = []byte(text)
	}
	if members, err = object(detail); err != nil {
		return nil, &Error{Setting: "detail", Value: shorten(detail), Source: Event, Detail: err.Error()}
	}
	return members, nil
}

// object decodes a JSON object; nothing and null are an empty one.
func object(data []byte) (map[string]json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil //nolint:nilnil // an empty map
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var members map[string]json.RawMessage
	if err := decoder.Decode(&members); err != nil {
		return nil, errors.New("must be a JSON object of settings, or empty")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one JSON object: something follows it")
	}
	return members, nil
}

// eventValue reads a text, number, true or false, and for a list an array of texts.
func (s setting) eventValue(raw json.RawMessage) (given, error) {
	g := given{name: s.key, source: Event}
	if s.list {
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil || list == nil {
			return given{}, errors.New("must be an array of texts")
		}
		g.list = list
		return g, nil
	}
	switch raw[0] {
	case '"':
		if err := json.Unmarshal(raw, &g.text); err != nil {
			return given{}, errors.New("must be a text")
		}
	case '{', '[', 'n':
		return given{}, errors.New("must be a text, a number, true or false")
	default:
		g.text = string(raw) // a number as it is written, true or false
	}
	return g, nil
}

// shorten keeps an error message readable whatever was sent.
func shorten(data []byte) string {
	const most = 80
	if len(data) > most {
		return string(bytes.ToValidUTF8(data[:most], nil)) + "…"
	}
	return string(data)
}
