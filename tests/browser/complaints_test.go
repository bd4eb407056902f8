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

// complaints is what a browser had to say of the page, and whom it asked.
type complaints struct {
	server string

	mu   sync.Mutex
	list []string
}

func newComplaints(server string) *complaints { return &complaints{server: server} }

// enable has the browser tell of everything from before the page is loaded on.
func (c *complaints) enable(ctx context.Context, target *chromedp.Target) error {
	const keepViolations = `window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective))`
	_, keeping := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: keepViolations})
	_, logging := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
	_, tracking := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
	_, running := cdp.Call(ctx, target, runtime.Enable, cdp.Empty{})
	return errors.Join(keeping, logging, tracking, running)
}

func (c *complaints) note(event any) {
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		c.add("console: %s", event.Type)
	case *runtime.EventExceptionThrown:
		c.add("exception: %s", event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// An answer of 400 or 401 is logged by the browser itself.
		isRefusal := event.Entry.Source == log.EntrySourceNetwork && strings.HasPrefix(event.Entry.URL, c.server+collection)
		if !isRefusal && (event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning) {
			c.add("%s: %s", event.Entry.Source, event.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		address := event.Request.URL
		if !strings.HasPrefix(address, c.server+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			c.add("asked for %s", address)
		}
		if strings.Contains(address, token) {
			c.add("the token is in an address: %s", address)
		}
	}
}

func (c *complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

// take returns what there is and forgets it.
func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.list, "\n")
}
