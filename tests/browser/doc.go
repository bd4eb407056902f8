// Package browser tests the web page of relayerd in a real browser, which
// also enforces the page's Content Security Policy.
//
// The tests are skipped if there is no browser. If CI is set, they fail instead. The
// same applies to npm, which downloads axe-core. They prefer
// chromium-headless-shell, which needs half of the time of chromium. CHROMIUM names a
// browser that is not in PATH as one of these. The flag -screenshots saves
// a picture of each view.
package browser
