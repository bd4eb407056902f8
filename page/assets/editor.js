// The form of a new relayer, and that of a stored one. What is entered is kept until it is saved or
// canceled, also while other views are shown. An edit sends the ETag of the revision that the user
// saw. If the relayer was changed since, it shows what has changed, and saves again for the
// current revision: fields that the user did not change keep their current value.

import { lineOf } from './actions.js';
import { attempt, call, callOne, explain, may, Refusal, scope, textOfProblems } from './api.js';
import { differences } from './differences.js';
import { byId, onSubmit, say, write } from './dom.js';
import { relayerForm } from './forms.js';
import { writeJSON } from './json.js';
import { goTo, noteGone } from './main.js';
import { inSentence, linkTo, nameInSentence, sentenceOf, shortened } from './view.js';

const drafts = new Map(); // by the ID of their relayer, '' for a new one
let shown; // the draft in the form
const unsaved = 'You have changes that are not saved. Save them, or press Cancel to discard them.';
const changed = 'This relayer was changed since you opened the form. When you save, the page shows what changed.';
const isShown = (draft) => draft === shown && !byId('edit').hidden;
const isUnsaved = (id) => drafts.has(id) && drafts.get(id).form.isChanged();
export const hasUnsaved = () => [...drafts.keys()].some(isUnsaved);
export function dropAll() { drafts.clear(); }

// Removes what was entered about a relayer that is gone, and reports whether something was.
export function drop(id) {
  const isLost = isUnsaved(id);
  drafts.delete(id);
  return isLost;
}

// Returns what the user should know about the form that another view replaces.
export function noticeOfLeaving() {
  return shown?.id && isShown(shown) && isUnsaved(shown.id) ? 'Your changes to ' + nameInSentence(shown.stored) + ' are not saved. Open it again to save or discard them.' : '';
}

// Shows the form of a relayer, or if it has no ID that of a new one.
export async function showEditor(id, signal) {
  if (!may(id ? 'update' : 'create')) throw new Refusal({ status: 403 });
  const current = id ? await callOne(id, { signal }) : {};
  const { data: stored, etag } = current;
  if (id && !isUnsaved(id)) drafts.delete(id);
  const isKept = drafts.has(id);
  if (!isKept) drafts.set(id, { id, stored, etag, form: relayerForm(stored ?? {}, stored), note: id || !scope('create') ? '' : 'This token may create only relayers with ' + inSentence(scope('create')) + '.' });
  shown = drafts.get(id);
  write('edit-title', id ? 'Edit ' + nameInSentence(shown.stored) : 'New relayer');
  write('edit-note', shown.etag === etag ? shown.note || (id && isKept ? unsaved : '') : changed);
  write('save', id ? 'Save' : 'Create the relayer');
  byId('edit-reason').value = shown.reason ?? '';
  byId('edit-fields').replaceChildren(...shown.form.elements);
}

// Opens the form with values as entries of the user: those of an earlier version of a relayer, or of
// another one.
export function openWith(values, { data: stored, etag } = {}, texts) {
  const id = stored?.id ?? '';
  if (isUnsaved(id) && !confirm('You have changes that are not saved. Discard them?')) return;
  const form = relayerForm({ ...values, custom_rpc_urls: stored?.custom_rpc_urls }, stored);
  if (!form.isChanged()) {
    say('Every field that can be edited has this value');
    return;
  }
  drafts.set(id, { id, stored, etag, form, ...texts });
  goTo(id ? '#edit=' + encodeURIComponent(id) : '#new');
}

// Returns the problems of a refusal as the API lists them.
function problemsOf(refusal, doing) {
  if (refusal.errors.length > 0) return refusal.errors;
  return [refusal.status === 409 ? { field: 'id', message: refusal.message } : { message: explain(refusal, doing) }];
}

function close(draft, to, text) {
  const wasShown = isShown(draft);
  if (drafts.get(draft.id) === draft) drafts.delete(draft.id); // the user may have begun another one
  if (wasShown) goTo(to, text, true);
  else say(text); // the user has opened another view
}

onSubmit(byId('edit-form'), async () => {
  const mine = shown;
  const { id, stored, etag, form } = mine;
  if (mine.isSending) return;
  form.clearErrors();
  const fields = id ? form.changes(stored) : form.collect();
  if (id && Object.keys(fields).length === 0) {
    close(mine, linkTo(stored.id), 'Nothing was changed');
    return;
  }
  mine.isSending = true;
  write('edit-note', 'Saving');
  const focused = document.activeElement;
  const setInert = (isInert) => form.elements.forEach((element) => { element.inert = isInert; });
  setInert(true); // what is entered now would be lost
  const received = () => {
    setInert(false);
    if (document.activeElement === document.body) focused.focus();
  };
  const send = async () => {
    const request = { body: writeJSON(fields), reason: lineOf('edit-reason') };
    const { data } = await (id ? callOne(id, { ...request, method: 'PATCH', etag }) : call('', { ...request, method: 'POST' })).finally(received);
    close(mine, linkTo(data.id), nameInSentence(data) + (id ? ' was changed' : ' was created'));
  };
  await attempt(send, (refusal) => refuse(mine, refusal)).finally(() => { mine.isSending = false; });
});

function refuse(mine, refusal) {
  const { id, form } = mine;
  if (id && refusal.status === 404) return noteGone(id);
  if (refusal.status === 412) return attempt(() => showConflict(mine), (problem) => refuse(mine, problem));
  const done = id ? 'changed' : 'created';
  const title = refusal.isUnknown() ? 'It is not known whether the relayer was ' + done : 'The relayer was not ' + done;
  const problems = problemsOf(refusal, id ? 'change this relayer' : 'create relayers');
  const others = form.showErrors(problems);
  if (isShown(mine)) write('edit-note', title + (others.length > 0 ? ': ' + textOfProblems(others) : '. The fields show why.'));
  else say(title + ': ' + textOfProblems(problems));
}

async function showConflict(mine) {
  const { data, etag, change } = await callOne(mine.id);
  const what = shortened(differences(mine.stored, data).map((text) => shortened(text, 100)).join('; '), 300) || 'no visible field';
  const note = 'This relayer was changed since you opened the form: ' + sentenceOf(change) + ' (' + what + '). Save again to apply your changes to the current revision.';
  Object.assign(mine, { stored: data, etag, note });
  if (isShown(mine)) write('edit-note', note);
  else say(note);
}

// Notes in the form if its relayer has another revision now.
export async function noteChange() {
  const mine = shown;
  if (!mine.id) return;
  const note = (text) => isShown(mine) && !mine.isSending && write('edit-note', text);
  await attempt(async () => {
    const { etag } = await callOne(mine.id);
    if (etag !== mine.etag) note(changed);
  }, ({ status }) => status === 404 && note('This relayer was deleted since you opened the form.'));
}

byId('edit-reason').addEventListener('input', ({ target }) => { shown.reason = target.value; });
byId('edit-cancel').addEventListener('click', () => close(shown, shown.id ? linkTo(shown.id) : '#page=1', ''));
