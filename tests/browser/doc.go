// Package browser holds the tests of the example server's page in a real
// browser, since only a browser knows what its policy lets through.
//
// They are skipped where there is no browser, and fail there where CI is set.
// CHROMIUM names one that is not in PATH as chromium, chromium-browser or
// google-chrome.
package browser
