// The reason that the user may give for a change. It is stored with the change.

import { make, newID } from './dom.js';

// Adds an input before an element. A pasted text may have characters that a line must not
// have.
export function reasonField(next) {
  const input = make('input', { id: newID('reason'), type: 'text', maxlength: 256, autocomplete: 'off' });
  const element = make('div', { class: 'field reason' }, [make('label', { for: input.id }, 'Reason for the change'), input]);
  next.before(element);
  return {
    element,
    text: () => input.value.replace(/\p{Cc}/gu, ' ').trim(),
    fill(text) { input.value = text; },
  };
}
