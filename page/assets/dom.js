export const byId = (id) => document.getElementById(id);

// Embeddings, overrides and isolates of Unicode reorder the text around them.
const keepOrder = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd');

// Returns a text that does not reorder the words around it, although it may be written from
// right to left.
export const isolated = (text) => '\u2068' + keepOrder(text) + '\u2069';

// Returns a text as the page shows it. Every text goes through it, because names, reasons and
// messages of the server are those of others.
const printable = (text) => text.split(/\u2068([^\u2066-\u2069]*)\u2069/).map((part, index) => (index % 2 === 1 ? isolated(part) : keepOrder(part))).join('');

const isText = (name) => name === 'title' || name === 'aria-label';

// Shows a text in an element or in that with an id.
export function write(target, text) {
  const element = typeof target === 'string' ? byId(target) : target;
  element.textContent = printable(text);
}

// A string becomes text and never markup.
export function make(tag, attributes = {}, content = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, isText(name) ? printable(value) : value);
  if (typeof content === 'string') write(element, content);
  else element.append(...content.map((part) => (typeof part === 'string' ? printable(part) : part)));
  return element;
}

let ids = 0;

export const newID = (prefix) => prefix + '-' + ++ids;

// Changes a node into another one. What is equal stays, so that the focus, a
// selection and a pressed button survive an update.
export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((node, index) => (before[index] ? morph(before[index], node) : old.append(node)));
  before.slice(after.length).forEach((node) => node.remove());
}

let statusTimer;

// Screen readers announce the status. It is hidden after some seconds, or at once if
// the view shows the same text.
export function say(words, isUnseen = false) {
  const hide = () => byId('status').classList.add('unseen');
  clearTimeout(statusTimer);
  write('status', words);
  byId('status').classList.remove('unseen');
  if (isUnseen) hide();
  else statusTimer = setTimeout(hide, 8000);
}

// Says words after a second, until the returned function is called. Then it says again what
// they have replaced, such as the result of a write before a slow read.
export function sayWhile(words) {
  let replaced = '';
  const timer = setTimeout(() => {
    replaced = byId('status').textContent;
    say(words);
  }, 1000);
  return () => {
    clearTimeout(timer);
    if (byId('status').textContent === words) say(replaced);
  };
}

export function onSubmit(form, act) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });
}

// Browsers offer the clipboard only over HTTPS and on the own machine.
async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const holder = make('textarea', { class: 'unseen' });
  const focused = document.activeElement;
  holder.value = text;
  document.body.append(holder);
  holder.select();
  const isCopied = document.execCommand('copy');
  holder.remove();
  focused.focus();
  if (!isCopied) throw new Error('not allowed');
}

export function copyButton(what, text) {
  return make('button', { type: 'button', class: 'copy', 'data-copy': text, 'data-what': what, 'aria-label': 'Copy the ' + what, title: 'Copy the ' + what }, [byId('icon-copy').content.firstElementChild.cloneNode(true)]);
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const { copy: text, what } = button.dataset;
  try {
    await copy(text);
    say('Copied the ' + what);
    button.classList.add('done');
    setTimeout(() => button.classList.remove('done'), 1500);
  } catch {
    say('The browser does not allow to copy. Select the text and copy it by hand.');
  }
});
