package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pageErrors collects what must not happen in a page: errors, warnings, console
// output, and requests to other servers or with the token in the URL.
type pageErrors struct {
	server string

	mu   sync.Mutex
	list []string
}

// enableEvents makes the browser report all events, beginning before the page is loaded.
func enableEvents(ctx context.Context, target *chromedp.Target) error {
	const keepViolations = `window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective))`
	_, keeping := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: keepViolations})
	_, logging := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
	_, tracking := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
	_, running := cdp.Call(ctx, target, runtime.Enable, cdp.Empty{})
	return errors.Join(keeping, logging, tracking, running)
}

func (p *pageErrors) note(event any) {
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		p.add("console: %s", event.Type)
	case *runtime.EventExceptionThrown:
		p.add("exception: %s", event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// The browser logs responses with 400 and 401 by default.
		isRefusal := event.Entry.Source == log.EntrySourceNetwork && strings.HasPrefix(event.Entry.URL, p.server) && strings.Contains(event.Entry.URL, "/api/v1/")
		if !isRefusal && (event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning) {
			p.add("%s: %s", event.Entry.Source, event.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		address := event.Request.URL
		if !strings.HasPrefix(address, p.server+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			p.add("request to %s", address)
		}
		if strings.Contains(address, token) {
			p.add("the token is in the URL %s", address)
		}
	}
}

func (p *pageErrors) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// take returns and clears the list.
func (p *pageErrors) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}
