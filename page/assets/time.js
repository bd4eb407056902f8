// Times: how long ago, with the exact local time in a tooltip.

import { make, write } from './dom.js';

// Returns the local date and time to the second, or '' if there is no such time.
export function localTime(time) {
  const local = new Date(time - time.getTimezoneOffset() * 60000);
  return Number.isNaN(local.getTime()) ? '' : local.toISOString().slice(0, 19).replace('T', ' ');
}

// Returns the time of the day, and the date if it is another day.
export function shortTime(text) {
  const [date, time] = localTime(new Date(text)).slice(0, 16).split(' ');
  return date === localTime(new Date()).slice(0, 10) ? time : date + ' ' + time;
}

// Returns a time for the API: one such as 2h is that long ago, and another one is a local time. A date is
// its beginning.
export function exactTime(text) {
  const [, number, unit] = /^(\d+)(min|h|d)$/.exec(text) ?? [];
  const [, date, rest] = /^(\d{4}-\d\d-\d\d)(.*)$/.exec(text) ?? [];
  const time = unit ? new Date(Date.now() - number * { min: 60000, h: 3600000, d: 86400000 }[unit]) : new Date(date + (rest || 'T00:00'));
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}

function ago(text) {
  const seconds = (Date.now() - new Date(text)) / 1000;
  if (seconds < 60) return 'just now';
  const [size, unit] = [[86400, ' d'], [3600, ' h'], [60, ' min']].find(([length]) => seconds >= length);
  return Math.floor(seconds / size) + unit + ' ago';
}

export const timeOf = (text) => make('time', { datetime: text, title: localTime(new Date(text)) }, ago(text));

setInterval(() => {
  for (const element of document.querySelectorAll('time')) write(element, ago(element.dateTime));
}, 20000);
